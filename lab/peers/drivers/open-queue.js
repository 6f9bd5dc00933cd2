/** Headgate as it is published, on the store that the URL names; `build` is where it has been compiled to. */
import { request } from './tally.js';

const { build, url, durability } = request;
const load = (module) => import(`${build}/${module}/index.js`);

async function onPostgres() {
  const { openPostgres } = await load('database');
  const { createPostgresQueueStore } = await load('queue/postgres');
  const database = await openPostgres({ connectionString: url });
  return { store: createPostgresQueueStore({ database }), close: () => database.close() };
}

async function onRedis() {
  const { createRedisQueueStore } = await load('queue/redis');
  return { store: createRedisQueueStore({ url, durability }), close: async () => {} };
}

export async function openQueue() {
  const { createQueue, createWorker } = await load('queue');
  const { store, close } = await (url.startsWith('redis:') ? onRedis() : onPostgres());
  const queue = createQueue({ store });
  await queue.start();
  return { queue, createWorker, close };
}
