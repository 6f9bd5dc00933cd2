/** The check of histories is itself checked: it finds each planted fault, and nothing in a store without one. */
import { describe, expect, test } from 'vitest';
import type { LeasedMessage, QueueStore } from '../../src/queue/index.js';
import { createQueue } from '../../src/queue/index.js';
import { createMemoryQueueStore } from '../../src/queue/memory/index.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import {
  checkQueueHistory,
  type QueueEnding,
  QueueRecord,
  recordQueueStore,
} from '../../src/testing/queue-history-check.js';

type Fault = (store: QueueStore) => Partial<QueueStore>;

const withFault = (store: QueueStore, fault: Fault): QueueStore => {
  const faulty = fault(store);
  return new Proxy(store, {
    get: (target, name) => {
      const own = faulty[name as keyof QueueStore] ?? Reflect.get(target, name);
      return typeof own === 'function' ? (own as (...values: unknown[]) => unknown).bind(target) : own;
    },
  });
};

/** A few messages of two values, through every operation, with an expiry. */
async function run(fault: Fault): Promise<string[]> {
  const clock = new ManualClock();
  const record = new QueueRecord();
  const store = recordQueueStore(withFault(createMemoryQueueStore(), fault), record);
  const queue = createQueue({ store, clock });
  await queue.configure('q', { history: 'message', type: { kind: 'exclusive', key: 'user' } });
  for (let index = 0; index < 8; index += 1) {
    await queue.enqueue('q', [{ id: `m${index}`, payload: 1, metadata: { user: `u${index % 2}` } }]);
  }
  const old: LeasedMessage[] = [];
  for (let round = 0; round < 40; round += 1) {
    const messages = await queue.dequeue('q', { count: 2, leaseMs: 1_000 });
    const [first, second] = messages;
    if (first) await (round % 3 === 0 ? queue.release('q', [first]) : queue.complete('q', [first]));
    if (second && round % 4 === 1) {
      old.push(second);
      clock.advance(1_000);
    } else if (second) await queue.complete('q', [second]);
    for (const lease of old) await queue.extend('q', [lease]);
    clock.advance(10);
  }
  for (let round = 0; round < 20; round += 1) {
    clock.advance(60_000);
    await queue.complete('q', await queue.dequeue('q', { count: 8 }));
  }
  const endings = new Map<string, QueueEnding>();
  for (let index = 0; index < 8; index += 1) {
    const id = `m${index}`;
    endings.set(id, { message: await queue.get('q', id), events: await queue.history('q', id) });
  }
  return checkQueueHistory(record, endings, ({ metadata }) => metadata['user']);
}

const faults: Record<string, { readonly fault: Fault; readonly finds: RegExp }> = {
  'an acknowledged enqueue that is lost': {
    fault: (store) => ({ get: async (request) => (request.id === 'm3' ? undefined : store.get(request)) }),
    finds: /^m3: an acknowledged enqueue was lost$/,
  },
  'a message handed out while its lease runs': {
    fault: (store) => {
      let last: LeasedMessage | undefined;
      return {
        dequeue: async (request) => {
          const messages = await store.dequeue(request);
          const again =
            last && messages.length > 0
              ? [{ ...last, leaseToken: `${last.leaseToken}x`, version: last.version + 1 }]
              : [];
          last = messages.at(-1) ?? last;
          return [...messages, ...again];
        },
      };
    },
    finds: /two live leases/,
  },
  'an old token that is accepted': {
    fault: (store) => ({
      extend: async (request) => {
        const message = await store.get({
          queue: request.queue,
          id: request.leases[0]!.id,
          now: request.now,
        });
        return [
          {
            kind: 'done',
            id: request.leases[0]!.id,
            state: 'running',
            version: message!.version + 1,
            leaseUntil: 0,
          },
        ];
      },
    }),
    finds: /extend accepted from the token of version \d+ after the lease of version/,
  },
  'two running messages of one value': {
    fault: (store) => ({
      configure: (queue, change) => store.configure(queue, { ...change, type: { kind: 'simple' } }),
    }),
    finds: /^value u\d: m\d and m\d ran at once$/,
  },
  'a change that is missing from the history': {
    fault: (store) => ({
      history: async (request) => (await store.history(request)).filter(({ version }) => version !== 2),
    }),
    finds: /versions 1 3 .* have a gap/,
  },
  'an attempt that is not counted': {
    fault: (store) => ({
      history: async (request) => (await store.history(request)).map((event) => ({ ...event, attempt: 0 })),
    }),
    finds: /attempt 0 after 0 at version 2/,
  },
  'a message that never ends': {
    fault: (store) => ({
      get: async (request) => {
        const message = await store.get(request);
        return message && request.id === 'm5' ? { ...message, state: 'running' } : message;
      },
    }),
    finds: /^m5: ends running, not terminal$/,
  },
};

describe('the check of queue histories', () => {
  test('finds nothing in a store that keeps its promises', async () => {
    expect(await run(() => ({}))).toEqual([]);
  });

  test.each(Object.entries(faults))('finds %s', async (_, { fault, finds }) => {
    expect((await run(fault)).some((line) => finds.test(line))).toBe(true);
  });
});
