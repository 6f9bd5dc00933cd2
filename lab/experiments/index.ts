/** All experiments, in the order in which `list` shows them; each part keeps its own list. */
import type { Experiment } from '../experiment.js';
import { feedExperiments } from './feed/index.js';
import { notifyExperiments } from './notify/index.js';
import { queueExperiments } from './queue/index.js';

export const experiments: readonly Experiment[] = [
  ...queueExperiments,
  ...feedExperiments,
  ...notifyExperiments,
];
