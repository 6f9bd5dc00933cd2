/** The experiments of the feed, in the order in which `list` shows them. */
import type { Experiment } from '../../experiment.js';
import { celebrity } from './celebrity.js';
import { deleteExperiment } from './delete.js';
import { drain } from './drain.js';
import { fanOutExperiment } from './fan-out.js';
import { home } from './home.js';
import { homeRedis } from './home-redis.js';
import { fanOutRedis } from './fan-out-redis.js';
import { hysteresis } from './hysteresis.js';
import { modesExperiment } from './modes.js';
import { ownPost } from './own-post.js';
import { paging } from './paging.js';
import { scorePrecision } from './score-precision.js';
import { timelineMemory } from './timeline-memory.js';

export const feedExperiments: readonly Experiment[] = [
  home,
  homeRedis,
  fanOutExperiment,
  fanOutRedis,
  celebrity,
  drain,
  modesExperiment,
  ownPost,
  deleteExperiment,
  hysteresis,
  paging,
  scorePrecision,
  timelineMemory,
];
