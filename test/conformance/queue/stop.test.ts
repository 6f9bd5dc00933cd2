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

test('a queue that has been stopped runs nothing again for a dequeue that would wait', async () => {
  let steps = 0;
  const store = createMemoryQueueStore();
  const housekeep = store.housekeep.bind(store);
  const counting = Object.assign(store, {
    housekeep: (request: Parameters<typeof housekeep>[0]) => {
      steps += 1;
      return housekeep(request);
    },
  });
  const queue = createQueue({ store: counting, limits: { pollMs: 1 } });
  await queue.start();
  await queue.stop();
  const before = steps;
  expect(await queue.dequeue('q', { waitMs: 60_000 })).toEqual([]);
  // Timers of one length fire in the order in which they were set.
  await new Promise((resolve) => setTimeout(resolve, 1));
  expect(steps).toBe(before);
});
