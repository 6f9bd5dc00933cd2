/** The feed in a minute: accounts, a follow, a post, and the home that shows it. Runs on an embedded database in memory. */
import { openPglite } from 'headgate/database';
import { createFeed, createFeedWorker } from 'headgate/feed';
import { createPostgresFeedStore } from 'headgate/feed/postgres';
import { createQueue } from 'headgate/queue';
import { createPostgresQueueStore } from 'headgate/queue/postgres';

const database = await openPglite({ folder: 'memory' });
const queue = createQueue({ store: createPostgresQueueStore({ database }) });
await queue.start();

const configuration = { database, queue, store: createPostgresFeedStore({ database }) };
const feed = createFeed(configuration);
const worker = createFeedWorker(configuration);
await feed.start();
await worker.start();

// Your own user ids, any string.
for (const id of ['ann', 'bob', 'eve']) await feed.putAccount({ id });
await feed.follow({ follower: 'bob', followee: 'ann' });
await feed.follow({ follower: 'bob', followee: 'eve' });

await feed.publish({ author: 'ann', text: 'good morning', key: 'request-1' });
await feed.publish({ author: 'ann', text: 'good morning', key: 'request-1' }); // the same key is the same post
await feed.publish({ author: 'eve', text: 'buy now' });
await feed.mute({ muter: 'bob', muted: 'eve' }); // holds from the next read, whatever is still under way

const { items } = await feed.home({ reader: 'bob' });
for (const post of items) console.log(`${post.author}: ${post.text} (${post.why.text})`);

await worker.stop();
await feed.stop();
await queue.stop();
await database.close();
