/** The experiments of notify, in the order in which `list` shows them. */
import type { Experiment } from '../../experiment.js';
import { door } from './door.js';
import { guarantee } from './guarantee.js';
import { isolation } from './isolation.js';
import { notifyPeer } from './notify-peer.js';
import { retryRule } from './retry-rule.js';

export const notifyExperiments: readonly Experiment[] = [guarantee, isolation, retryRule, door, notifyPeer];
