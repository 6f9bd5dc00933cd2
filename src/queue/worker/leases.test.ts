/** What keeps leases alone: whom it asks for, when, and whose answer is whose. */
import { afterEach, expect, test, vi } from 'vitest';
import { systemClock } from '../../clock.js';
import type { LeasedMessage } from '../message.js';
import type { LeaseOutcome } from '../store.js';
import type { CallGate } from './calls.js';
import { Held, type HeldPhase } from './held.js';
import { Leases } from './leases.js';

const leaseMs = 3_000;

function open({ outcomes = {}, replyMs = 0 }: { outcomes?: Record<string, LeaseOutcome>; replyMs?: number }) {
  const clock = { ...systemClock, ms: 0, monotonicMs: () => clock.ms };
  const asked: string[][] = [];
  const lost: string[] = [];
  const gate = {
    mayCall: () => true,
    run: async <T>(call: () => Promise<T>) => ({ ok: true, value: await call() }),
  };
  const leases = new Leases({
    store: {
      extend: async (request) => {
        asked.push(request.leases.map(({ id }) => id));
        clock.ms += replyMs;
        return request.leases.map(
          ({ id }) => outcomes[id] ?? { kind: 'done', id, state: 'running', version: 3 },
        );
      },
    },
    leaseMs,
    clock,
    gate: gate as unknown as CallGate,
    onLost: (held, kind) => void lost.push(`${held.message.id} ${kind}`),
  });
  const add = (id: string, { phase = 'running' as HeldPhase, leasedAtMs = 0 } = {}): void => {
    const message = { id, queue: 'q', leaseToken: id } as LeasedMessage;
    const held = new Held({ message, lane: 0, leasedAtMs, fetchedAtMs: leasedAtMs });
    held.phase = phase;
    leases.add(held);
  };
  return { leases, clock, asked, lost, add };
}

const answered = () => new Promise((resolve) => setImmediate(resolve));

afterEach(() => {
  vi.useRealTimers();
});

test('one call is for all that are old enough, whatever becomes of them, and each has its own answer', async () => {
  const { leases, clock, asked, lost, add } = open({
    outcomes: {
      taken: { kind: 'lease-lost', id: 'taken' },
      canceled: { kind: 'canceled', id: 'canceled' },
      busy: { kind: 'busy', id: 'busy' },
    },
  });
  add('waiting', { phase: 'waiting' });
  add('taken');
  add('settling', { phase: 'settling' });
  add('busy');
  add('ended', { phase: 'ended' });
  add('canceled');
  add('young', { leasedAtMs: 900 });
  clock.ms = 1_000;
  leases.tick();
  await answered();
  expect(asked).toEqual([['waiting', 'taken', 'settling', 'busy', 'canceled']]);
  expect(lost).toEqual(['taken lease-lost', 'canceled canceled']);
  // Who was told nothing is asked for again at once, who was extended is not.
  clock.ms = 1_100;
  leases.tick();
  expect(asked.slice(1)).toEqual([['taken', 'busy', 'canceled']]);
});

test('a lease runs from when its extension was sent, not from when it was answered', async () => {
  const { leases, clock, asked, add } = open({ replyMs: 900 });
  add('m');
  clock.ms = 1_000;
  leases.tick();
  await answered();
  expect(clock.ms).toBe(1_900);
  clock.ms = 2_000;
  leases.tick();
  expect(asked).toEqual([['m'], ['m']]);
});

test.each([0, 1, 250, 499, 500, 750])(
  'a lease that began %i ms after a look is extended before half of it is over',
  (beganMs) => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const { leases, clock, asked, add } = open({});
    leases.start();
    add('m', { leasedAtMs: beganMs });
    while (asked.length === 0 && clock.ms < leaseMs) {
      clock.ms += 1;
      vi.advanceTimersByTime(1);
    }
    leases.stop();
    expect(clock.ms - beganMs).toBeLessThanOrEqual(leaseMs / 2);
  },
);
