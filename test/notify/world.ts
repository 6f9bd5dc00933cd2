/** What the tests of notifications share: kinds, a provider that does what it is told, and an engine on each database. */
import type { Database } from '../../src/database/index.js';
import type { Log } from '../../src/log.js';
import {
  createNotify,
  defineKinds,
  type AttemptContext,
  type AttemptOutcome,
  type AttemptRequest,
  type Channel,
  type KindTable,
  type Ledger,
  type Notify,
  type NotifyTimings,
  type Provider,
} from '../../src/notify/index.js';
import { createPostgresNotifyStore } from '../../src/notify/postgres/index.js';
import { createQueue, type Queue } from '../../src/queue/index.js';
import { createPostgresQueueStore } from '../../src/queue/postgres/index.js';
import { until } from '../../src/testing/until.js';

export const kinds = defineKinds({
  otp: {
    delivery: 'at-least-once',
    channels: ['sms'],
    deadline: '15s',
    attemptsMax: 3,
    retryAfter: '2s',
    priority: 'urgent',
    floor: 60,
    secret: true,
    required: true,
    data: (input: unknown): { code: string } => input as { code: string },
    templates: { sms: { text: 'Your code is {{ code }}' } },
  },
  order: {
    delivery: 'at-least-once',
    channels: ['email'],
    deadline: '1h',
    attemptsMax: 5,
    templates: {
      email: { subject: 'Order {{ number }}', text: 'Thank you for order {{ number }}.' },
      sms: { text: 'Order {{ number }}' },
      push: { title: 'Order', body: '{{ number }}' },
      inbox: { title: 'Order', body: '{{ number }}' },
      webhook: { type: 'order.placed' },
    },
  },
  promo: {
    delivery: 'at-most-once',
    channels: ['push'],
    templates: {
      email: { subject: 'New: {{ what }}', text: 'Look at {{ what }}', html: '<p>Look at {{ what }}</p>' },
      push: { title: 'New', body: '{{ what }}' },
      sms: { text: '{{ what }}' },
      webhook: { type: 'promo' },
    },
  },
});
export type TestKinds = typeof kinds;

/** The same with pauses that a test can wait for. */
export const quickKinds: TestKinds = {
  otp: { ...kinds.otp, retryAfter: 50 as never },
  order: { ...kinds.order, retryAfter: 50 } as TestKinds['order'],
  promo: kinds.promo,
};

/** Short where a test would otherwise wait. */
export const shortTimings: Partial<NotifyTimings> = {
  timeoutMs: 500,
  // A loaded machine stands still for a while, and what stood still for half of this is not called.
  marginMs: 3_000,
  sweepEveryMs: 100,
  sweepMs: 500,
  kindsMs: 0,
};

export interface World<Table extends KindTable = TestKinds> {
  readonly database: Database;
  readonly queue: Queue;
  readonly notify: Notify<Table>;
  readonly schema: string;
  stop(): Promise<void>;
}

let made = 0;

/** An engine on schemas of its own. */
export async function openWorld<Table extends KindTable = TestKinds>(input: {
  readonly database: Database;
  readonly providers: readonly Provider[];
  readonly kinds?: Table;
  readonly timings?: Partial<NotifyTimings>;
  readonly unsubscribe?: NonNullable<Parameters<typeof createNotify>[0]['unsubscribe']>;
  readonly breaker?: NonNullable<Parameters<typeof createNotify>[0]['breaker']>;
  readonly log?: Log;
  readonly suffix?: string;
  readonly clock?: Parameters<typeof createNotify>[0]['clock'];
}): Promise<World<Table>> {
  made += 1;
  const suffix = input.suffix ?? `${process.pid}_${made}`;
  const { database, log } = input;
  const clock = input.clock === undefined ? {} : { clock: input.clock };
  const queue = createQueue({
    store: createPostgresQueueStore({ database, schema: `q_${suffix}` }),
    ...clock,
  });
  await queue.start();
  const notify = createNotify<Table>({
    database,
    store: createPostgresNotifyStore({ database, schema: `n_${suffix}` }),
    queue,
    kinds: input.kinds ?? (kinds as unknown as Table),
    providers: input.providers,
    timings: { ...shortTimings, ...input.timings },
    ...(log && { log }),
    ...(input.unsubscribe && { unsubscribe: input.unsubscribe }),
    ...(input.breaker && { breaker: input.breaker }),
    ...clock,
  });
  await notify.start();
  return {
    database,
    queue,
    notify,
    schema: `"n_${suffix}"`,
    async stop() {
      await notify.stop();
      await queue.stop();
    },
  };
}

export interface ScriptedProvider extends Provider {
  readonly calls: (AttemptRequest & { readonly startedAtMs: number })[];
}

export type Answer =
  | AttemptOutcome
  | ((request: AttemptRequest, context: AttemptContext) => Promise<AttemptOutcome> | AttemptOutcome);

export const sent: AttemptOutcome = { kind: 'sent' };
export const ambiguous: AttemptOutcome = { kind: 'ambiguous', detail: 'http 500' };
export const notAccepted: AttemptOutcome = { kind: 'not-accepted', detail: 'refused connection' };
export const refused: AttemptOutcome = { kind: 'refused', detail: 'http 400' };
/** Never answers; ends when the engine says so. */
export const silence = (_request: AttemptRequest, { signal }: AttemptContext): Promise<AttemptOutcome> =>
  new Promise((resolve) => {
    const end = (): void => resolve({ kind: 'ambiguous', detail: 'timeout', unanswered: true });
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
  });

/** Gives the answers in order; the last one is repeated. */
export function scriptedProvider(
  channel: Channel,
  answers: readonly Answer[] = [sent],
  options: Partial<Provider> = {},
): ScriptedProvider {
  const calls: (AttemptRequest & { startedAtMs: number })[] = [];
  return {
    name: `test-${channel}`,
    channel,
    ...options,
    calls,
    async attempt(request, context) {
      const answer = answers[Math.min(calls.length, answers.length - 1)] as Answer;
      calls.push({ ...request, startedAtMs: performance.now() });
      return typeof answer === 'function' ? answer(request, context) : answer;
    },
  };
}

export interface ProgrammableProvider extends Provider {
  /** What each address answers, in order; the last one is repeated. An address without answers is sent. */
  readonly answers: Map<string, readonly Answer[]>;
  calls(address: string): readonly ScriptedProvider['calls'][number][];
}

/** One provider for many tests: each has addresses of its own. */
export function programmableProvider(
  channel: Channel,
  options: Partial<Provider> = {},
): ProgrammableProvider {
  const answers = new Map<string, readonly Answer[]>();
  const calls = new Map<string, ScriptedProvider['calls'][number][]>();
  return {
    name: `test-${channel}`,
    channel,
    ...options,
    answers,
    calls: (address) => calls.get(address) ?? [],
    async attempt(request, context) {
      const { address } = request.destination;
      const own = calls.get(address) ?? [];
      calls.set(address, own);
      const script = answers.get(address) ?? [sent];
      const answer = script[Math.min(own.length, script.length - 1)] as Answer;
      own.push({ ...request, startedAtMs: performance.now() });
      return typeof answer === 'function' ? answer(request, context) : answer;
    },
  };
}

/** Ends when none of these deliveries waits or is being sent. */
export async function untilEnded(notify: Pick<Notify, 'delivery'>, ids: readonly string[]): Promise<void> {
  await until(
    async () => {
      const states = await Promise.all(ids.map(async (id) => (await notify.delivery(id))?.state));
      return states.every((state) => state !== 'waiting' && state !== 'sending');
    },
    { what: `${ids.length} deliveries end` },
  );
}

/** Whether every part of the ledger together is what the caller counted. */
export function addsUp(ledger: Ledger, accepted: number): boolean {
  const { waiting, sent: done, failed, expired, suppressed, ambiguous: unknown } = ledger;
  return (
    ledger.accepted === accepted && waiting + done + failed + expired + suppressed + unknown === accepted
  );
}

export const phone = '+41791234567';
export const sms = { channel: 'sms', address: phone } as const;
export const email = { channel: 'email', address: 'a@example.test' } as const;
