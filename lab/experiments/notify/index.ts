/** The experiments of notify, in the order in which `list` shows them. */
import type { Experiment } from '../../experiment.js';

export const notifyExperiments: readonly Experiment[] = [];
