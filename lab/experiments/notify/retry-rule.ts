/**
 * The retry rule on four jobs that a dead process left in `sending`: a code 3 s old, a promotion, a code past its 15 s and
 * a receipt at its fifth try of five. One goes back, three end; a loop that retries whatever is open sends all four again.
 */
import type { NotifyStore } from '../../../src/notify/index.js';
import { createPostgresNotifyStore } from '../../../src/notify/postgres/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import { openEngine, withLabServer } from './engine.js';

interface Job {
  readonly name: string;
  readonly id: string;
  /** What the rule makes of it. */
  readonly expected: string;
}

async function run({ tell }: ExperimentContext): Promise<Report> {
  return withLabServer(async ({ open, durability }) => {
    const { database } = await open();
    const clock = new ManualClock();
    const { notify, stop } = await openEngine({ database, suffix: 'rule', providers: [], clock });
    const store = createPostgresNotifyStore({ database, schema: 'notify_rule' });
    const jobs = await leaveInSending({ store, clock, notify, database });
    clock.advance(3_000);
    const sweep = () =>
      store.settleLost(database, { limit: 100, jitter: 0, sweepMs: 60_000, now: clock.now() });
    const swept = await sweep();
    const again = await sweep();
    const states = await Promise.all(jobs.map(async ({ id }) => (await notify.delivery(id))?.state));
    const rows = jobs.map(({ name, expected }, index): Figure[] => {
      const state = states[index] ?? 'gone';
      return [name, state, expected, state === expected];
    });
    const right = rows.filter(([, , , isRight]) => isRight === true).length;
    const back = states.filter((state) => state === 'waiting').length;
    tell(`${swept.length} settled, ${again.length} by a second sweep`);
    await stop();
    return {
      tables: [{ columns: ['left in sending', 'became', 'reference', 'as it should be'], rows }],
      figures: {
        'go back': back,
        'end at once': jobs.length - back,
        'left in sending': states.filter((state) => state === 'sending').length,
        'changed by a second sweep': again.length,
        'sent again by a loop that retries whatever is open': jobs.length,
      },
      reference: { 'goes back': 1, end: 3 },
      durability,
      holds: right === jobs.length && again.length === 0,
      verdict: `${back} goes back and ${jobs.length - back} end; a loop that retries whatever is open would send a second promotion, a code that is out of date and a sixth copy`,
    };
  });
}

/** Sends and claims as a process would that then dies, by a clock that is moved by hand. */
async function leaveInSending(input: {
  readonly store: NotifyStore;
  readonly clock: ManualClock;
  readonly notify: Awaited<ReturnType<typeof openEngine>>['notify'];
  readonly database: Awaited<ReturnType<typeof openEngine>>['database'];
}): Promise<Job[]> {
  const { store, clock, notify, database } = input;
  const send = async (kind: 'otp' | 'order' | 'promo', key: string): Promise<string> => {
    const address = kind === 'otp' ? '+41791234567' : 'https://example.test/';
    const to = [{ channel: kind === 'otp' ? 'sms' : 'webhook', address } as const];
    const { deliveries } = await notify.send(kind, { user: 'u', key, data: { code: '1', number: 1 }, to });
    return deliveries[0]!.id;
  };
  const claim = async (id: string): Promise<void> => {
    const request = { id, provider: 'p', alternative: undefined, timeoutMs: 1_000, marginMs: 1_000 };
    const { kind } = await store.claim(database, { ...request, now: clock.now() });
    if (kind !== 'claimed') throw new Error(`${id} could not be claimed: ${kind}`);
  };
  const fifth = await send('order', 'fifth');
  for (let attempt = 1; attempt < 5; attempt += 1) {
    await claim(fifth);
    const settled = await store.settle(database, {
      id: fifth,
      attempt,
      provider: 'p',
      outcome: { kind: 'ambiguous', detail: 'timeout' },
      jitter: 0,
      atOnce: false,
      sweepMs: 60_000,
      now: clock.now(),
    });
    clock.advance(settled.retryInMs ?? 0);
  }
  const late = await send('otp', 'late');
  clock.advance(13_000);
  const young = await send('otp', 'young');
  const promo = await send('promo', 'promo');
  for (const id of [fifth, late, young, promo]) await claim(id);
  return [
    { name: 'code, 3 s old', id: young, expected: 'waiting' },
    { name: 'promotion', id: promo, expected: 'ambiguous' },
    { name: 'code past its 15 s', id: late, expected: 'expired' },
    { name: 'receipt at its 5th try of 5', id: fifth, expected: 'failed' },
  ];
}

export const retryRule: Experiment = {
  name: 'retry-rule',
  shows: 'what becomes of four jobs that a dead process left in sending',
  run,
};
