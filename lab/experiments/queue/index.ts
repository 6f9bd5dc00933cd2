/** The experiments of the queue, in the order in which `list` shows them. */
import type { Experiment } from '../../experiment.js';
import { backlog } from './backlog.js';
import { durability } from './durability.js';
import { exclusive } from './exclusive.js';
import { failover } from './failover.js';
import { peers } from './peers.js';
import { redisRates } from './redis-rates.js';
import { shards } from './shards.js';
import { timestone } from './timestone.js';
import { worker } from './worker.js';

export const queueExperiments: readonly Experiment[] = [
  timestone,
  exclusive,
  backlog,
  shards,
  durability,
  failover,
  peers,
  redisRates,
  worker,
];
