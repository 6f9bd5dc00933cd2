/**
 * Model test: random sequences of operations give the same answers on every store as on the memory store, which is the
 * specification. Time is moved by hand. A failure prints its seed and the shrunken sequence; replay it with
 * `HEADGATE_SEED=<seed> npx vitest run test/simulation/queue-model.test.ts`.
 */
import {
  array,
  assert,
  asyncProperty,
  boolean,
  constantFrom,
  integer,
  oneof,
  option,
  record,
  uniqueArray,
  type Arbitrary,
} from 'fast-check';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { expect } from 'vitest';
import type { Database } from '../../src/database/index.js';
import {
  createQueue,
  type LeasedMessage,
  type Queue,
  type QueueConfiguration,
  type QueueStore,
} from '../../src/queue/index.js';
import { createMemoryQueueStore } from '../../src/queue/memory/index.js';
import { createPostgresQueueStore } from '../../src/queue/postgres/index.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { testDatabases } from '../database/test-databases.js';

const seed = Number(process.env['HEADGATE_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const isLong = process.env['HEADGATE_LONG'] === '1';

/** One store under one sequence: the leases it has given out, by the order in which it gave them. */
class Side {
  readonly queue: Queue;
  readonly #store: QueueStore;
  readonly #clock: ManualClock;
  readonly #name: string;
  readonly #leases: LeasedMessage[] = [];

  constructor(store: QueueStore, clock: ManualClock, name: string) {
    this.queue = createQueue({ store, clock });
    this.#store = store;
    this.#clock = clock;
    this.#name = name;
  }

  async configure(change: Partial<QueueConfiguration>): Promise<void> {
    await this.queue.configure(this.#name, change);
  }

  /** The answer, freed of what differs by right: tokens, and the ids of the queue. */
  async run(command: Command): Promise<unknown> {
    const name = this.#name;
    switch (command.type) {
      case 'enqueue':
        return (await this.queue.enqueue(name, command.messages.map(messageOf))).map(({ kind, ...rest }) =>
          'error' in rest ? kind : { kind, ...rest },
        );
      case 'dequeue': {
        const messages = await this.queue.dequeue(name, {
          count: command.count,
          leaseMs: command.leaseMs,
          where: command.kind === null ? {} : { kind: command.kind },
          requestId: `${name}-r${command.request}`,
        });
        this.#leases.push(...messages);
        return messages.map(({ leaseToken: _, queue: __, ...rest }) => rest);
      }
      case 'extend':
        return this.queue.extend(
          name,
          this.#some(command.leases).map((lease) => ({ ...lease, leaseMs: command.leaseMs })),
        );
      case 'complete':
        return this.queue.complete(
          name,
          this.#some(command.leases).map((lease) => ({ ...lease, result: 1 })),
        );
      case 'fail':
        return this.queue.fail(
          name,
          this.#some(command.leases).map((lease) => ({ ...lease, error: 'x', ...delayOf(command.delayMs) })),
        );
      case 'release':
        return this.queue.release(
          name,
          this.#some(command.leases).map((lease) => ({
            ...lease,
            delayMs: command.delayMs,
            refund: command.refund,
          })),
        );
      case 'cancel':
        return this.queue.cancel(name, command.ids.map(idOf));
      case 'requeue':
        return this.queue.requeue(name, command.ids.map(idOf));
      case 'change':
        return this.queue.change(name, [
          { id: idOf(command.id), priority: command.priority, visibleAt: this.#clock.now() + command.inMs },
        ]);
      case 'purge':
        return this.queue.purge(name, command.state);
      case 'housekeep':
        await this.#store.housekeep({ now: this.#clock.storeNow() });
        return undefined;
      default:
        return undefined;
    }
  }

  /** Everything that can be read, for comparison. */
  async picture(): Promise<unknown> {
    const name = this.#name;
    const states = ['invisible', 'pending', 'running', 'completed', 'canceled', 'errored'] as const;
    const depth = await this.queue.depth(name);
    const depthOfKind = await this.queue.depth(name, { kind: 'a' });
    const lists = await Promise.all(states.map((state) => this.queue.list(name, { state })));
    const messages = lists.flatMap((list) => list.messages.map(({ queue: _, ...rest }) => rest));
    const histories = await Promise.all(ids.map((id) => this.queue.history(name, id)));
    const oldest = await this.queue.oldest(name);
    return {
      depth,
      depthOfKind,
      oldestAgeMs: oldest?.ageMs,
      messages,
      histories: histories.map((events) =>
        events.map(({ version, from, to, at, attempt }) => [version, from, to, at, attempt]),
      ),
    };
  }

  #some(places: readonly number[]): LeasedMessage[] {
    const unique = new Map(
      places.flatMap((place) => {
        const lease = this.#leases.at(-1 - place);
        return lease ? [[`${lease.id} ${lease.leaseToken}`, lease] as const] : [];
      }),
    );
    return [...unique.values()];
  }
}

const ids = ['m0', 'm1', 'm2', 'm3', 'm4', 'm5', 'm6', 'm7'];
const idOf = (index: number): string => ids[index % ids.length]!;
const delayOf = (delayMs: number | null) => (delayMs === null ? {} : { retryDelayMs: delayMs });

interface ModelMessage {
  readonly id: number;
  readonly payload: number;
  readonly priority: number;
  readonly delayMs: number;
  readonly kind: string;
  readonly user: string;
  readonly attemptsMax: number;
  readonly unique: boolean;
}

const messageOf = ({ id, payload, priority, delayMs, kind, user, attemptsMax, unique }: ModelMessage) => ({
  id: idOf(id),
  payload,
  priority,
  delayMs,
  metadata: { kind, user },
  attemptsMax,
  uniqueWhileLive: unique,
});

type Command =
  | { readonly type: 'enqueue'; readonly messages: readonly ModelMessage[] }
  | {
      readonly type: 'dequeue';
      readonly count: number;
      readonly leaseMs: number;
      readonly kind: string | null;
      readonly request: number;
    }
  | { readonly type: 'extend'; readonly leases: readonly number[]; readonly leaseMs: number }
  | { readonly type: 'complete'; readonly leases: readonly number[] }
  | { readonly type: 'fail'; readonly leases: readonly number[]; readonly delayMs: number | null }
  | {
      readonly type: 'release';
      readonly leases: readonly number[];
      readonly delayMs: number;
      readonly refund: boolean;
    }
  | { readonly type: 'cancel' | 'requeue'; readonly ids: readonly number[] }
  | { readonly type: 'change'; readonly id: number; readonly priority: number; readonly inMs: number }
  | { readonly type: 'purge'; readonly state: 'pending' | 'invisible' | 'completed' }
  | { readonly type: 'advance'; readonly ms: number }
  | { readonly type: 'housekeep' };

const of = <T extends Command['type']>(type: T) => constantFrom(type);
const place = integer({ min: 0, max: 7 });
const duration = constantFrom(1, 100, 1_000, 30_000);
const someLeases = uniqueArray(integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 3 });
const message: Arbitrary<ModelMessage> = record({
  id: place,
  payload: integer({ min: 1, max: 2 }),
  priority: integer({ min: -2, max: 2 }),
  delayMs: constantFrom(0, 0, 100, 1_000),
  kind: constantFrom('a', 'b'),
  user: constantFrom('u', 'v', 'w'),
  attemptsMax: integer({ min: 1, max: 3 }),
  unique: boolean(),
});

const command: Arbitrary<Command> = oneof(
  {
    weight: 4,
    arbitrary: record({ type: of('enqueue'), messages: array(message, { minLength: 1, maxLength: 4 }) }),
  },
  {
    weight: 5,
    arbitrary: record({
      type: of('dequeue'),
      count: integer({ min: 1, max: 4 }),
      leaseMs: duration,
      kind: option(constantFrom('a', 'b')),
      request: integer({ min: 0, max: 30 }),
    }),
  },
  { weight: 1, arbitrary: record({ type: of('extend'), leases: someLeases, leaseMs: duration }) },
  { weight: 3, arbitrary: record({ type: of('complete'), leases: someLeases }) },
  {
    weight: 2,
    arbitrary: record({ type: of('fail'), leases: someLeases, delayMs: option(constantFrom(0, 100)) }),
  },
  {
    weight: 2,
    arbitrary: record({
      type: of('release'),
      leases: someLeases,
      delayMs: constantFrom(0, 100),
      refund: boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: record({ type: of('cancel'), ids: uniqueArray(place, { minLength: 1, maxLength: 2 }) }),
  },
  {
    weight: 1,
    arbitrary: record({ type: of('requeue'), ids: uniqueArray(place, { minLength: 1, maxLength: 2 }) }),
  },
  {
    weight: 1,
    arbitrary: record({
      type: of('change'),
      id: place,
      priority: integer({ min: -2, max: 2 }),
      inMs: constantFrom(0, 100),
    }),
  },
  {
    weight: 1,
    arbitrary: record({
      type: of('purge'),
      state: constantFrom('pending' as const, 'invisible' as const, 'completed' as const),
    }),
  },
  { weight: 4, arbitrary: record({ type: of('advance'), ms: constantFrom(1, 100, 1_000, 30_000, 60_000) }) },
  { weight: 1, arbitrary: record({ type: of('housekeep') }) },
);

const setups: Record<string, Partial<QueueConfiguration>> = {
  'a simple queue': { history: 'message' },
  'an exclusive queue': { history: 'batch', type: { kind: 'exclusive', key: 'user' } },
  'a queue of short retention': {
    history: 'message',
    retentionMs: { completed: 0, canceled: 1_000, errored: 50_000 },
  },
};

describe.each(testDatabases())(
  'the postgres store on $name answers like the memory store',
  ({ name, open }) => {
    const clock = new ManualClock();
    let database: Database;
    let store: QueueStore;
    let queues = 0;
    beforeAll(async () => {
      database = await open();
      store = createPostgresQueueStore({ database, schema: `model_${process.pid}` });
      await store.start();
    });
    afterAll(async () => {
      await store.stop();
      await database.close();
    });

    test.each(Object.entries(setups))(
      '%s',
      async (_, configuration) => {
        const property = asyncProperty(array(command, { minLength: 1, maxLength: 40 }), async (commands) => {
          queues += 1;
          const sides = [
            new Side(createMemoryQueueStore(), clock, `q${queues}`),
            new Side(store, clock, `q${queues}`),
          ];
          for (const side of sides) await side.configure(configuration);
          for (const each of commands) {
            if (each.type === 'advance') clock.advance(each.ms);
            const [expected, actual] = [await sides[0]!.run(each), await sides[1]!.run(each)];
            expect(actual, JSON.stringify(each)).toEqual(expected);
          }
          const [expected, actual] = [await sides[0]!.picture(), await sides[1]!.picture()];
          expect(actual).toEqual(expected);
        });
        const numRuns = (isLong ? 500 : 25) * (name === 'pglite' ? 0.4 : 1);
        await assert(property, { seed, numRuns, endOnFailure: !isLong });
      },
      isLong ? 1_800_000 : 120_000,
    );
  },
);
