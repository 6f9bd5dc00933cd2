/**
 * The sweep: every half second it settles deliveries whose process died while it sent and wakes those whose wake-up is
 * overdue. Every worker runs one; they skip each other's rows.
 */
import type { Component } from '../lifecycle.js';
import type { NewMessage } from '../queue/index.js';
import { notifyMetrics } from './metrics.js';
import { queueOf, type NotifySettings } from './options.js';
import type { Swept } from './store.js';
import { wakeUp } from './wake-up.js';

/** Purging old rows and joining late receipts can wait for so many sweeps. */
const housekeepingEvery = 20;

export interface Sweep extends Component {
  /** One round; answers how many deliveries it touched. */
  once(): Promise<number>;
}

export function createSweep(settings: NotifySettings, more: readonly (() => Promise<number>)[] = []): Sweep {
  const { store, database, clock, timings, random, log } = settings;
  const metrics = settings.metrics(notifyMetrics);
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<unknown> | undefined;
  let stopped = true;
  let rounds = 0;

  const settleLost = async (): Promise<Swept[]> => {
    const swept = await store.settleLost(database, {
      limit: timings.sweepRowsMax,
      jitter: random(),
      sweepMs: timings.sweepMs,
      now: clock.storeNow(),
    });
    for (const { id, kind, state } of swept) {
      log.warn({ delivery: id, kind, state }, 'a delivery was left in sending; it has been settled');
    }
    return swept;
  };

  const once = async (): Promise<number> => {
    const lost = await settleLost();
    const now = clock.storeNow();
    const overdue = await store.wakeOverdue(database, {
      limit: timings.sweepRowsMax,
      sweepMs: timings.sweepMs,
      now,
    });
    const swept = [...lost, ...overdue];
    await wake(settings, swept);
    for (const { kind, state, from } of swept) {
      const result = state === 'waiting' ? (from === 'sending' ? 'retry' : 'woken') : state;
      metrics.add('headgate_notify_swept_total', { result });
      if (state !== 'waiting') metrics.add('headgate_notify_finished_total', { kind, state });
    }
    let touched = swept.length;
    for (const step of more) touched += await step();
    if (rounds % housekeepingEvery === 0) {
      await store.joinReceipts(database, { limit: 100, windowMs: timings.receiptsKeptMs, now });
      await store.purge(database, {
        limit: timings.sweepRowsMax,
        receiptsKeptMs: timings.receiptsKeptMs,
        now,
      });
    }
    rounds += 1;
    return touched;
  };

  const schedule = (): void => {
    if (stopped) return;
    timer = setTimeout(() => {
      running = once()
        .catch((error: unknown) => log.warn({ error }, 'a sweep failed; the next one tries again'))
        .finally(schedule);
    }, timings.sweepEveryMs);
  };

  return {
    once,
    async start() {
      if (!stopped) return;
      stopped = false;
      schedule();
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}

/** A wake-up that is still live stays what it is. */
async function wake(settings: NotifySettings, swept: readonly Swept[]): Promise<void> {
  const byQueue = new Map<string, NewMessage[]>();
  for (const { id, kind, route, state, priority, runAfter, wakeInMs } of swept) {
    if (state !== 'waiting') continue;
    const queue = queueOf(settings, route);
    const message = wakeUp({ id, kind, priority, runAfter, delayMs: wakeInMs });
    byQueue.set(queue, [...(byQueue.get(queue) ?? []), message]);
  }
  for (const [queue, messages] of byQueue) await settings.queue.enqueue(queue, messages);
}
