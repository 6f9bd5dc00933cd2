/** Puts the pieces of the feed together. */
import { createContext, type FeedConfiguration } from './configuration.js';
import type { Feed } from './feed.js';
import { followMethods } from './follow.js';
import { watchFanOuts } from './housekeeping.js';
import { importFollowsMethod } from './import-follows.js';
import { importPostsMethod } from './import-posts.js';
import { liveMethod } from './live.js';
import { accountMethods } from './manage-accounts.js';
import { postMethods } from './manage-posts.js';
import { operateMethods } from './operate-feed.js';
import { publishMethod } from './publish.js';
import { homeMethod } from './read-home.js';
import { listMethods, relationMethods } from './relations.js';
import { startTimelineServers } from './timeline-servers.js';
import { postOfMessage } from './work.js';

/**
 * @example
 * const store = createPostgresFeedStore({ database });
 * const feed = createFeed({ database, store, queue });
 * await feed.start();
 * await feed.putAccount({ id: 'ada' });
 * await feed.publish({ author: 'ada', text: 'Hello' });
 * const { items } = await feed.home({ reader: 'ada' });
 */
export function createFeed(configuration: FeedConfiguration): Feed {
  const { context, settled } = createContext(configuration);
  let unwatch: (() => void) | undefined;
  return {
    ...accountMethods(context),
    ...followMethods(context),
    ...relationMethods(context),
    ...listMethods(context),
    importFollows: importFollowsMethod(context),
    publish: publishMethod(context),
    importPosts: importPostsMethod(context),
    ...postMethods(context),
    home: homeMethod(context),
    live: liveMethod(context, { count: 0 }),
    ...operateMethods(context),

    /** Brings the schema up to date. */
    async start() {
      await context.store.start();
      await startTimelineServers(context);
      unwatch ??= watchFanOuts(context, postOfMessage);
    },

    async stop() {
      unwatch?.();
      unwatch = undefined;
      await settled();
      await context.hints.stop();
    },
  };
}
