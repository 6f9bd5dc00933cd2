/** The experiments of the queue, in the order in which `list` shows them. */
import type { Experiment } from '../../experiment.js';
import { backlog } from './backlog.js';
import { durability } from './durability.js';
import { exclusive } from './exclusive.js';
import { peers } from './peers.js';
import { timestone } from './timestone.js';
import { worker } from './worker.js';

export const queueExperiments: readonly Experiment[] = [
  timestone,
  exclusive,
  backlog,
  durability,
  peers,
  worker,
];
