/** Which totals of an overview the figures and charts are made of. */
import { overQueues, type Pick } from './series.js';

export const posts: Pick = ({ feed }) => feed.postsTotal;
export const entries: Pick = ({ feed }) => feed.entriesWrittenTotal;
export const homeReads: Pick = ({ feed }) => feed.homeReadsTotal;
export const incompleteReads: Pick = ({ feed }) => feed.homeReadsTotal - feed.homeCompleteTotal;
export const enqueued = overQueues((queue) => queue.enqueuedTotal);
export const completed = overQueues((queue) => queue.completedTotal);
export const failed = overQueues((queue) => queue.failedTotal);
