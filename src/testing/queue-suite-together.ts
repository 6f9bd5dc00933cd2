/** Store suite: calls that come at the same moment. A store may take them together; nobody must be able to tell. */
import { expect, test } from 'vitest';
import { bind, idsOf, type QueueHarness } from './queue-suite-harness.js';

export function togetherTests(harness: () => QueueHarness): void {
  test('of many small enqueues at once, each gets its own answer', async () => {
    const { queue, depth } = bind(harness());
    const sent = [
      ...idsOf(40).map((id) => ({ id, payload: 'same' })),
      ...idsOf(10).map((id) => ({ id, payload: 'same' })),
      { id: 'bad\0', payload: 'same' },
      ...idsOf(5).map((id) => ({ id, payload: 'other' })),
    ];
    const calls = await Promise.all(sent.map((message) => queue.enqueue('q', [message])));
    const told = calls.map(([outcome]) => outcome!);
    expect(told.map(({ id }) => id)).toEqual(sent.map(({ id }) => id));
    const created = new Map<string, string>();
    for (const [index, outcome] of told.entries()) {
      if (outcome.kind !== 'enqueued' || !outcome.created) continue;
      expect(created.has(outcome.id)).toBe(false);
      created.set(outcome.id, sent[index]!.payload);
    }
    expect([...created.keys()].sort()).toEqual(idsOf(40).sort());
    for (const [index, outcome] of told.entries()) {
      if (outcome.kind === 'enqueued' && outcome.created) continue;
      const { id, payload } = sent[index]!;
      expect([id, outcome.kind]).toEqual([
        id,
        id === 'bad\0' ? 'refused' : payload === created.get(id) ? 'enqueued' : 'conflict',
      ]);
    }
    expect(await depth()).toEqual([0, 40, 0]);
  });

  test('messages whose ids nobody brought are all new', async () => {
    const { queue, takeIds } = bind(harness());
    const calls = await Promise.all(idsOf(30).map((_, index) => queue.enqueue('q', [{ payload: index }])));
    const told = calls.flat();
    expect(told.every((outcome) => outcome.kind === 'enqueued' && outcome.created)).toBe(true);
    expect((await takeIds({ count: 100 })).sort()).toEqual(told.map(({ id }) => id).sort());
  });

  test('of many dequeues at once, each gets what it asked for, under its own request', async () => {
    const { queue, clock, enqueue } = bind(harness());
    await enqueue(idsOf(60));
    const requests = idsOf(20, 'request').map((requestId, index) => ({
      requestId,
      count: 1 + (index % 4),
      leaseMs: 60_000 * (1 + (index % 3)),
      worker: `worker-${index}`,
    }));
    const calls = await Promise.all(requests.map((request) => queue.dequeue('q', request)));
    expect(calls.map(({ length }) => length)).toEqual(requests.map(({ count }) => count));
    expect(new Set(calls.flat().map(({ id }) => id)).size).toBe(50);
    for (const [index, messages] of calls.entries()) {
      for (const { leaseToken, leaseUntil } of messages) {
        expect(leaseToken.startsWith(`${requests[index]!.requestId}.`)).toBe(true);
        expect(leaseUntil).toBe(clock.now() + requests[index]!.leaseMs);
      }
    }
    const again = await Promise.all(requests.map((request) => queue.dequeue('q', { ...request, count: 9 })));
    expect(again).toEqual(calls);
  });

  test('a request that comes twice at the same moment gets the same leases twice', async () => {
    const { queue, enqueue } = bind(harness());
    await enqueue(idsOf(30));
    const calls = await Promise.all(
      idsOf(12).map((_, index) => queue.dequeue('q', { requestId: `r${index % 3}`, count: 2 })),
    );
    for (const [index, messages] of calls.entries()) expect(messages).toEqual(calls[index % 3]);
    expect(new Set(calls.flat().map(({ id }) => id)).size).toBe(6);
  });

  test('with fewer messages than requests, the best go to some of them and none twice', async () => {
    const { queue, enqueue } = bind(harness());
    await enqueue(idsOf(7));
    const calls = await Promise.all(idsOf(15).map(() => queue.dequeue('q', { count: 2 })));
    expect(
      calls
        .flat()
        .map(({ id }) => id)
        .sort(),
    ).toEqual(idsOf(7));
  });

  test('exclusive and limited queues keep their promise among dequeues at once', async () => {
    const { queue } = bind(harness());
    await queue.configure('exclusive', { type: { kind: 'exclusive', key: 'user' } });
    await queue.enqueue(
      'exclusive',
      idsOf(12).map((id, index) => ({ id, payload: {}, metadata: { user: `u${index % 3}` } })),
    );
    const held = await Promise.all(idsOf(12).map(() => queue.dequeue('exclusive')));
    expect(
      held
        .flat()
        .map(({ metadata }) => metadata['user'])
        .sort(),
    ).toEqual(['u0', 'u1', 'u2']);
    await queue.configure('limited', { rateLimit: { count: 5, perMs: 60_000 } });
    await queue.enqueue(
      'limited',
      idsOf(12).map((id) => ({ id, payload: {} })),
    );
    const limited = await Promise.all(idsOf(12).map(() => queue.dequeue('limited')));
    expect(limited.flat()).toHaveLength(5);
  });

  test('of many completions at once, each is accepted or refused by itself', async () => {
    const { queue, enqueue, take, stateOf } = bind(harness());
    await enqueue(idsOf(20));
    const leases = await take({ count: 20 });
    const wrong = leases.map((lease) => ({ ...lease, leaseToken: lease.leaseToken.replace(/.\./, '_.') }));
    const calls = await Promise.all(
      [...leases, ...wrong, ...leases].map((lease) => queue.complete('q', [{ ...lease, result: lease.id }])),
    );
    expect(calls.map(([outcome]) => outcome!.kind)).toEqual([
      ...idsOf(20).map(() => 'done'),
      ...idsOf(20).map(() => 'lease-lost'),
      ...idsOf(20).map(() => 'done'),
    ]);
    expect(await queue.get('q', 'm7')).toMatchObject({ state: 'completed', result: 'm7' });
    expect(await stateOf('m19')).toBe('completed');
  });
}
