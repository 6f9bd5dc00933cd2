/** The waiting room alone: however waiters come and go, one poll runs at a time, and subscriptions stay few. */
import { describe, expect, test } from 'vitest';
import { systemClock } from '../clock.js';
import { silentLog } from '../log.js';
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

describe('the waiting room', () => {
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
