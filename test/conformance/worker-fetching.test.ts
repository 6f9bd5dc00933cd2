import { expect, test } from 'vitest';
import { createQueue, createWorker, type QueueStore } from '../../src/queue/index.js';
import { createMemoryQueueStore } from '../../src/queue/memory/index.js';

const messages = 12_000;

/** Burns a queue down and tells what went on, in order. */
async function burnDown(sideBySide: boolean) {
  const inner = createMemoryQueueStore();
  const seen: string[] = [];
  let dequeues = 0;
  let most = 0;
  const call = async <T>(name: string, run: () => Promise<T>): Promise<T> => {
    seen.push(`${name} sent`);
    dequeues += 1;
    most = Math.max(most, dequeues);
    // A turn of the event loop, as a store that is somewhere else takes.
    await new Promise(setImmediate);
    const answer = await run();
    dequeues -= 1;
    seen.push(`${name} answered`);
    return answer;
  };
  const store = new Proxy(inner, {
    get(target, name: keyof QueueStore) {
      if (name === 'sideBySide') return sideBySide;
      if (name === 'dequeue')
        return (request: Parameters<QueueStore['dequeue']>[0]) =>
          call('dequeue', () => target.dequeue(request));
      if (name === 'settleAndDequeue')
        return (request: Parameters<NonNullable<QueueStore['settleAndDequeue']>>[0]) =>
          call('fused', () => target.settleAndDequeue!(request));
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
  const queue = createQueue({ store });
  await queue.start();
  await queue.enqueue(
    'work',
    Array.from({ length: messages }, (_, index) => ({ payload: index, priority: index })),
  );
  const order: number[] = [];
  // A clock that goes on by being looked at: what is fetched in advance follows from the rate, not from the machine.
  let looks = 0;
  const clock = { now: () => Date.now(), storeNow: () => undefined, monotonicMs: () => (looks += 1) / 100 };
  const worker = createWorker({
    queue,
    clock,
    queues: ['work'],
    slots: 10,
    handler: ({ payload }) => {
      order.push(payload as number);
      if (seen.at(-1) !== 'handled') seen.push('handled');
    },
  });
  await worker.start();
  await expect.poll(() => order.length, { timeout: 20_000 }).toBe(messages);
  await worker.stop();
  await queue.stop();
  return { seen, order, most };
}

test('where calls are carried out side by side, one dequeue of a queue is on its way, so that messages start in order', async () => {
  const { order, most } = await burnDown(true);
  expect(most).toBe(1);
  expect(order).toEqual(Array.from({ length: messages }, (_, index) => index));
});

test('where calls are carried out side by side, the next dequeue is sent before what has come is handled', async () => {
  const { seen } = await burnDown(true);
  const ahead = seen.filter(
    (what, index) =>
      what === 'dequeue sent' && seen[index - 1] === 'dequeue answered' && seen[index + 1] === 'handled',
  );
  expect(ahead.length).toBeGreaterThan(1);
});

test('where calls are carried out in turn, completions go along with the next dequeue', async () => {
  const { seen } = await burnDown(false);
  expect(seen.filter((what) => what === 'fused sent').length).toBeGreaterThan(1);
});
