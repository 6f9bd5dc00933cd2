/** All experiments, in the order in which `list` shows them. */
import type { Experiment } from '../experiment.js';
import { peers } from './peers.js';

export const experiments: readonly Experiment[] = [peers];
