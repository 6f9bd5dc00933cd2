/** The experiments of the feed, in the order in which `list` shows them. */
import type { Experiment } from '../../experiment.js';
import { home } from './home.js';

export const feedExperiments: readonly Experiment[] = [home];
