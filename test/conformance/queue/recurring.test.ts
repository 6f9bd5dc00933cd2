/** Recurring messages: cron, time zones, each tick once whoever runs it. On the memory store, with a clock moved by hand. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createQueue, type Queue } from '../../../src/queue/index.js';
import { silentLog } from '../../../src/log.js';
import { createMemoryQueueStore } from '../../../src/queue/memory/index.js';
import { ManualClock } from '../../../src/testing/manual-clock.js';

const at = (text: string): number => Date.parse(text);

describe('recurring messages', () => {
  const clock = new ManualClock();
  let queues: Queue[];
  let queue: Queue;

  beforeEach(async () => {
    clock.set(at('2026-03-27T12:00:00Z'));
    const store = createMemoryQueueStore();
    queues = [0, 1, 2].map(() => createQueue({ store, clock }));
    queue = queues[0]!;
  });
  afterEach(async () => {
    await Promise.all(queues.map((each) => each.stop()));
  });

  const put = (change = {}) =>
    queue.recur({
      name: 'nightly',
      queue: 'q',
      cron: '30 2 * * *',
      timeZone: 'Europe/Berlin',
      message: { payload: { n: 1 } },
      ...change,
    });
  const ids = async () =>
    (await queue.list('q', { state: 'pending' })).messages.map(({ id }) => id.slice('nightly@'.length));

  it('come at each tick, once with several processes, also over the change to summer time', async () => {
    expect(new Date((await put()).next).toISOString()).toBe('2026-03-28T01:30:00.000Z');
    await Promise.all(queues.map((each) => each.start()));
    for (const day of [28, 29, 30, 31]) {
      clock.set(at(`2026-03-${day}T01:30:00Z`));
      await expect.poll(async () => (await ids()).length, { timeout: 10_000 }).toBe(day - 27);
    }
    expect(await ids()).toEqual([
      '2026-03-28T01:30:00.000Z',
      '2026-03-29T01:00:00.000Z',
      '2026-03-30T00:30:00.000Z',
      '2026-03-31T00:30:00.000Z',
    ]);
  });

  it('are caught up, each once, when nothing ran for a while', async () => {
    await put({ cron: '0 * * * *', timeZone: 'UTC' });
    clock.advance(5 * 3_600_000);
    await queue.start();
    await expect.poll(async () => (await ids()).length, { timeout: 10_000 }).toBe(5);
    expect(new Set(await ids()).size).toBe(5);
  });

  it('keep their place when set again, and end when told to', async () => {
    const { next } = await put();
    await put();
    expect(await queue.recurring()).toMatchObject([{ name: 'nightly', next, cron: '30 2 * * *' }]);
    expect(await queue.endRecurring('nightly')).toBe(true);
    expect(await queue.endRecurring('nightly')).toBe(false);
    expect(await queue.recurring()).toEqual([]);
  });

  it('refuse what is no cron expression and no time zone, by name', async () => {
    for (const cron of ['nope', '* * * *', '61 * * * *', '* * * * * *']) {
      await expect(put({ cron })).rejects.toMatchObject({ code: 'invalid-input', field: 'cron' });
    }
    for (const timeZone of ['No/Where', '', 'local', '+02:00', 5]) {
      await expect(put({ timeZone })).rejects.toMatchObject({ code: 'invalid-input', field: 'timeZone' });
    }
  });

  it('into an exclusive queue need its key, and a tick that is refused later is told of', async () => {
    await queue.configure('q', { type: { kind: 'exclusive', key: 'customer' } });
    await expect(put()).rejects.toMatchObject({ code: 'invalid-input', field: 'metadata.customer' });
    const warnings: string[] = [];
    const warn = (_: object, text: string) => void warnings.push(text);
    const telling = createQueue({ store: queue.store, clock, log: { ...silentLog, warn } });
    queues.push(telling);
    await put({ cron: '0 * * * *', message: { payload: 1, metadata: { customer: 'ann' } } });
    await queue.pause('q', { enqueue: true });
    clock.advance(3_600_000);
    await telling.start();
    await expect.poll(() => warnings, { timeout: 10_000 }).toEqual(['a tick was refused']);
  });
});

it('a recurring message comes by the time of the store, however wrong the clock of the process is', async () => {
  const startedAt = Date.parse('2050-03-27T12:00:59.500Z');
  const from = performance.now();
  const timeNow = () => startedAt + performance.now() - from;
  const memory = createMemoryQueueStore();
  const recurring = memory.recurring.bind(memory);
  const store = Object.assign(memory, {
    time: async () => timeNow(),
    recurring: (request: { due: boolean }) => recurring({ ...request, now: timeNow() }),
  });
  const queue = createQueue({ store, limits: { pollMs: 50 } });
  await queue.recur({ name: 'each', queue: 'q', cron: '* * * * *', message: { payload: 1 } });
  await queue.start();
  await expect
    .poll(async () => (await queue.get('q', 'each@2050-03-27T12:01:00.000Z'))?.state, { timeout: 10_000 })
    .toBe('pending');
  await queue.stop();
});
