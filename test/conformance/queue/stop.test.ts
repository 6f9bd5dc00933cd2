/** A stop that ends by its deadline whatever the store does. */
import { expect, test } from 'vitest';
import { createQueue } from '../../../src/queue/index.js';
import { createMemoryQueueStore } from '../../../src/queue/memory/index.js';

test('a queue whose store answers nothing any more stops by its deadline', async () => {
  const store = createMemoryQueueStore();
  const queue = createQueue({ store });
  await queue.start();
  let asked = false;
  store.housekeep = () => {
    asked = true;
    return new Promise(() => {});
  };
  await expect.poll(() => asked, { timeout: 30_000 }).toBe(true);
  await queue.stop({ deadlineMs: 50 });
});
