/**
 * The metrics port. A part declares its metrics in one table (name, type, help, labels); the server binds them to
 * Prometheus. Labels are few-valued by rule: ids go to the log.
 */
export interface MetricDefinition {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: readonly string[];
  /** Upper bounds in the metric's unit; histograms only. */
  readonly buckets?: readonly number[];
}

export type MetricTable<Name extends string = string> = Readonly<Record<Name, MetricDefinition>>;
export type MetricLabels = Readonly<Record<string, string>>;

export interface Metrics<Name extends string = string> {
  /** Adds to a counter. */
  add(name: Name, labels: MetricLabels, amount?: number): void;
  /** Sets a gauge. */
  set(name: Name, labels: MetricLabels, value: number): void;
  /** Puts one observation into a histogram. */
  observe(name: Name, labels: MetricLabels, value: number): void;
}

/** Binds a part's table to a backend; called once for each part and backend. */
export type MetricsBackend = <Name extends string>(table: MetricTable<Name>) => Metrics<Name>;

/** Counts nothing; the default of the library. */
export const noMetrics: MetricsBackend = () => ({ add: () => {}, set: () => {}, observe: () => {} });
