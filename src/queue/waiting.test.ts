/** The waiting room alone: however waiters come and go, one poll runs at a time, and subscriptions stay few. */
import { afterEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../clock.js';
import { silentLog } from '../log.js';
import { StoreQueue } from './facade.js';
import { createMemoryQueueStore } from './memory/index.js';
import type { LeasedMessage } from './message.js';
import type { QueueStore } from './store.js';
import { WaitingRoom } from './waiting.js';

const open = (change: Partial<QueueStore>, pollMs = 1) => {
  const store = Object.assign(createMemoryQueueStore(), change);
  return new WaitingRoom({ store, log: silentLog, pollMs, clock: systemClock });
};
const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setTimeout(resolve, 1));
};

afterEach(() => {
  vi.useRealTimers();
});

describe('the waiting room', () => {
  test('polls every pollMs, also after a poll that failed', async () => {
    vi.useFakeTimers();
    let polls = 0;
    const ready = async (): Promise<string[]> => {
      polls += 1;
      throw new Error('away');
    };
    const room = open({ ready }, 900);
    const waiter = room.join('q', '');
    await vi.advanceTimersByTimeAsync(899);
    expect(polls).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    expect(polls).toBe(1);
    await vi.advanceTimersByTimeAsync(1_800);
    expect(polls).toBe(3);
    room.leave('q', waiter);
    await room.stop();
  });

  test('polls once at a time, whoever comes and goes while a poll is on its way', async () => {
    let running = 0;
    let most = 0;
    let polls = 0;
    const room = open({
      ready: async () => {
        running += 1;
        polls += 1;
        most = Math.max(most, running);
        await turns(3);
        running -= 1;
        return [];
      },
    });
    let waiter = room.join('q', '');
    for (let round = 0; round < 20; round += 1) {
      await turns(2);
      room.leave('q', waiter);
      waiter = room.join('q', '');
    }
    expect(polls).toBeGreaterThan(2);
    expect(most).toBe(1);
    room.leave('q', waiter);
    await room.stop();
  });

  test('keeps no more than a thousand subscriptions of queues for which nobody waits', async () => {
    let watched = 0;
    const room = open({
      watch: async () => {
        watched += 1;
        return async () => {
          watched -= 1;
        };
      },
    });
    for (let index = 0; index < 3_000; index += 1) room.leave(`q${index}`, room.join(`q${index}`, ''));
    await expect.poll(() => watched).toBe(1_000);
    await room.stop();
    expect(watched).toBe(0);
  });

  /** No poll comes to their help. */
  const waitersOf = (room: WaitingRoom, look: () => Promise<LeasedMessage[]>) => (filter: string) =>
    room.dequeue({ queue: 'q', filter, waitMs: 60_000, signal: undefined, isOver: () => false, look });

  test('a hint has one waiter of each filter look, and who has found something passes it on', async () => {
    const room = open({}, 60_000);
    const there: LeasedMessage[] = [];
    let looks = 0;
    const wait = waitersOf(room, async () => {
      looks += 1;
      return there.splice(0, 1);
    });
    const found = ['a', 'a', 'a', 'a', 'b', 'b'].map(wait);
    await turns(3);
    expect(looks).toBe(6);
    room.hint('q');
    await turns(3);
    expect(looks).toBe(8);
    there.push({ id: '1' } as LeasedMessage, { id: '2' } as LeasedMessage, { id: '3' } as LeasedMessage);
    room.hint('q');
    await expect.poll(() => there.length).toBe(0);
    there.push(...found.slice(3).map(() => ({ id: 'last' }) as LeasedMessage));
    room.hint('q');
    expect((await Promise.all(found)).flat()).toHaveLength(6);
    await room.stop();
  });

  test('a hint that comes while a waiter looks has it look once more', async () => {
    const room = open({}, 60_000);
    const answers: ((messages: LeasedMessage[]) => void)[] = [];
    const wait = waitersOf(room, () => new Promise((resolve) => answers.push(resolve)));
    const found = wait('');
    room.hint('q');
    answers.shift()!([]);
    await expect.poll(() => answers.length).toBe(1);
    answers.shift()!([{ id: 'm' } as LeasedMessage]);
    expect(await found).toEqual([{ id: 'm' }]);
    await room.stop();
  });
});

test('a queue that is resumed wakes who waits for it', async () => {
  const store = Object.assign(createMemoryQueueStore(), { ready: async () => [] });
  const queue = new StoreQueue({ store });
  await queue.enqueue('q', [{ id: 'm', payload: 1 }]);
  await queue.pause('q');
  const waiting = queue.dequeue('q', { waitMs: 60_000 });
  await turns(3);
  await queue.resume('q');
  expect(await waiting).toMatchObject([{ id: 'm' }]);
  await queue.stop();
});
