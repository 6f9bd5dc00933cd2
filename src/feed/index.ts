export type * from './account.js';
export { createFeed } from './create-feed.js';
export type { FeedConfiguration } from './configuration.js';
export { parseEdgeList } from './edge-list.js';
export { feedError, feedErrors } from './errors.js';
export type * from './feed.js';
export {
  generatedAccount,
  generateFollows,
  type GraphOptions,
  type GraphShape,
  quantilesOf,
  seededRandom,
} from './generate-graph.js';
export type * from './home.js';
export {
  type BadLine,
  type FollowFormat,
  followFormats,
  type OnBadLine,
  readFollows,
  readPosts,
} from './import-records.js';
export { feedMetrics, type FeedMetricName } from './metrics.js';
export type * from './operate.js';
export { feedDefaults, type FeedOptions, type FeedOptionsInput, type RankHomes } from './options.js';
export type * from './post.js';
export type { FeedStore, TimelineLists } from './store.js';
export { feedQueues } from './work.js';
export { createFeedWorker, type FeedWorker, type FeedWorkerOptions } from './worker.js';
