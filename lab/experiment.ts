/**
 * What an experiment is: one claim, measured on real stores beside its reference. An experiment answers figures and a
 * verdict; how they are shown is not its business.
 */
export interface ExperimentContext {
  /** Stays under 60 s. */
  readonly quick: boolean;
  /** The store to run on where an experiment knows several. */
  readonly store: string | undefined;
  readonly seed: number;
  /** Says what is going on, on stderr. */
  readonly tell: (line: string) => void;
}

/** A figure as it is shown and as it is read by programs. */
export type Figure = number | string | boolean | null;
export type Figures = Readonly<Record<string, Figure>>;

export interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Figure[])[];
}

export interface Report {
  readonly tables: readonly Table[];
  readonly figures: Figures;
  /** The figures to compare with, and the machine they came from. */
  readonly reference: Figures;
  /** What an acknowledged write survived in this run. */
  readonly durability: string;
  readonly holds: boolean;
  /** One sentence: what holds or falls short, and by how much. */
  readonly verdict: string;
}

export interface Experiment {
  readonly name: string;
  /** One line for `list`. */
  readonly shows: string;
  run(context: ExperimentContext): Promise<Report>;
}
