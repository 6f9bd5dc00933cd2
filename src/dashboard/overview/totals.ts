/** Which totals of an overview the figures and charts are made of. */
import { overQueues, type Pick } from './series.js';

export const posts: Pick = ({ feed }) => feed.postsTotal;
export const entries: Pick = ({ feed }) => feed.entriesWrittenTotal;
export const homeReads: Pick = ({ feed }) => feed.homeReadsTotal;
export const incompleteReads: Pick = ({ feed }) => feed.homeReadsTotal - feed.homeCompleteTotal;
export const notificationsSent: Pick = ({ notify }) => notify.finished.sent;
export const ambiguousAttempts: Pick = ({ notify }) => notify.attempts.ambiguous;
export const unsuccessful: Pick = ({ notify }) => notify.finished.failed + notify.finished.expired;
export const enqueued = overQueues((queue) => queue.enqueuedTotal);
export const completed = overQueues((queue) => queue.completedTotal);
export const errored = overQueues((queue) => queue.errored);
export const failed = overQueues((queue) => queue.failedTotal);
