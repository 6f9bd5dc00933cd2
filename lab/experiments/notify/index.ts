/** The experiments of notify, in the order in which `list` shows them. */
import type { Experiment } from '../../experiment.js';
import { notifyPeer } from './notify-peer.js';

export const notifyExperiments: readonly Experiment[] = [notifyPeer];
