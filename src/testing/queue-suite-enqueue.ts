/** Store suite: what enqueue takes, refuses and tells apart. */
import { expect, test } from 'vitest';
import type { JsonValue } from '../queue/index.js';
import { bind, idsOf, type QueueHarness, startsAt } from './queue-suite-harness.js';

export function enqueueTests(harness: () => QueueHarness): void {
  test('a message comes back as it was enqueued', async () => {
    const { queue, enqueue, take } = bind(harness());
    const payload = {
      text: 'é \u0000 \ud800 "quoted" \\ {}',
      empty: [],
      big: 9_007_199_254_740_991,
      nothing: null,
    };
    const metadata = { tenant: 't1', quote: '"\\', empty: '' };
    await queue.enqueue('q', [
      { id: 'a', payload, metadata, priority: -5, attemptsMax: 7, leaseMs: 1_000, trace: '00-ab-cd-01' },
    ]);
    const expected = {
      queue: 'q',
      id: 'a',
      payload,
      metadata,
      priority: -5,
      state: 'pending',
      attempts: 0,
      attemptsMax: 7,
      visibleAt: startsAt,
      version: 1,
      enqueuedAt: startsAt,
      trace: '00-ab-cd-01',
    };
    expect(await queue.get('q', 'a')).toMatchObject(expected);
    expect(await take()).toMatchObject([
      { ...expected, state: 'running', version: 2, attempts: 1, leaseUntil: startsAt + 1_000 },
    ]);
    await enqueue(['b']);
    expect(await queue.get('q', 'b')).toMatchObject({
      metadata: {},
      priority: startsAt,
      attemptsMax: 3,
      trace: undefined,
    });
  });

  test('an id is made where none is given, and told', async () => {
    const { queue } = bind(harness());
    const outcomes = await queue.enqueue('q', [{ payload: 1 }, { payload: 2 }]);
    const ids = outcomes.map(({ id }) => id);
    expect(new Set(ids).size).toBe(2);
    expect((await queue.get('q', ids[1]!))?.payload).toBe(2);
  });

  test('an id that is known is not enqueued again, and another payload under it is a conflict', async () => {
    const { queue } = bind(harness());
    const enqueue = (payload: JsonValue) => queue.enqueue('q', [{ id: 'a', payload }]);
    expect(await enqueue(1)).toEqual([{ kind: 'enqueued', id: 'a', created: true, state: 'pending' }]);
    expect(await enqueue(1)).toEqual([{ kind: 'enqueued', id: 'a', created: false, state: 'pending' }]);
    expect(await enqueue(2)).toEqual([{ kind: 'conflict', id: 'a', state: 'pending' }]);
    expect((await queue.get('q', 'a'))?.payload).toBe(1);
    expect((await queue.enqueue('other', [{ id: 'a', payload: 2 }]))[0]).toMatchObject({ created: true });
  });

  test('a batch that holds an id twice creates it once', async () => {
    const { queue, depth } = bind(harness());
    const outcomes = await queue.enqueue('q', [
      { id: 'a', payload: 1 },
      { id: 'b', payload: 1 },
      { id: 'a', payload: 1 },
      { id: 'a', payload: 2 },
    ]);
    expect(outcomes.map((outcome) => (outcome.kind === 'enqueued' ? outcome.created : outcome.kind))).toEqual(
      [true, true, false, 'conflict'],
    );
    expect(await depth()).toEqual([0, 2, 0]);
  });

  test('of many enqueues of one id at once, one creates it', async () => {
    const { queue, depth } = bind(harness());
    const ids = idsOf(20);
    const batches = await Promise.all(
      idsOf(8).map((_, shift) => {
        const order = [...ids.slice(shift), ...ids.slice(0, shift)];
        return queue.enqueue(
          'q',
          order.map((id) => ({ id, payload: {} })),
        );
      }),
    );
    const created = batches.flat().filter((outcome) => outcome.kind === 'enqueued' && outcome.created);
    expect(created.map(({ id }) => id).sort()).toEqual([...ids].sort());
    expect(await depth()).toEqual([0, 20, 0]);
  });

  test('Q46: a payload of up to 32,768 bytes of JSON is taken, a larger one refused with its size', async () => {
    const { queue } = bind(harness());
    const texts = [32_767, 32_768, 32_769].flatMap((bytes) => {
      const inner = bytes - 2;
      return ['a'.repeat(inner), (inner % 2 === 0 ? '' : 'a') + 'é'.repeat(Math.floor(inner / 2))];
    });
    const outcomes = await queue.enqueue(
      'q',
      texts.map((payload, index) => ({ id: `m${index}`, payload })),
    );
    expect(outcomes.map(({ kind }) => kind)).toEqual([
      'enqueued',
      'enqueued',
      'enqueued',
      'enqueued',
      'refused',
      'refused',
    ]);
    expect(outcomes[5]).toMatchObject({
      error: { code: 'payload-too-large', field: 'payload', value: 32_769 },
    });
    for (const index of [0, 1, 2, 3]) expect((await queue.get('q', `m${index}`))?.payload).toBe(texts[index]);
  });

  test('Q47: ids of every kind are kept exactly; composed and decomposed are two', async () => {
    const { queue, enqueue } = bind(harness());
    const ids = [
      'a:b',
      'a:b:c',
      'a:b:c:d',
      '{x}',
      'a b',
      '123',
      'é',
      'e\u0301',
      'a.b',
      "a'b",
      'a"b\\',
      '😀',
      '\ufeffa',
      '__proto__',
      'constructor',
      'A',
      'a',
      ' a',
      'a ',
    ];
    await enqueue(ids);
    for (const id of ids) expect((await queue.get('q', id))?.id).toBe(id);
  });

  test('Q49: a message that cannot be kept is refused by name and hurts none of the others', async () => {
    const { queue, depth } = bind(harness());
    const bad = [
      { change: { metadata: { key: 'a\u0000b' } }, field: 'metadata.key' },
      { change: { metadata: { key: 'a\ud800b' } }, field: 'metadata.key' },
      { change: { metadata: { 'k\u0000': 'v' } }, field: 'metadata key' },
      { change: { id: 'a\u0000b' }, field: 'id' },
      { change: { id: 'a\udc00b' }, field: 'id' },
      { change: { id: '' }, field: 'id' },
      { change: { payload: undefined as unknown as JsonValue }, field: 'payload' },
      { change: { payload: { deep: [1, null, Number.POSITIVE_INFINITY] } }, field: 'payload' },
      { change: { priority: 9_007_199_254_740_992 }, field: 'priority' },
      { change: { priority: 1.5 }, field: 'priority' },
      { change: { priority: Number.NaN }, field: 'priority' },
      { change: { priority: '1e21' as unknown as number }, field: 'priority' },
      { change: { delayMs: -1 }, field: 'delayMs' },
      { change: { attemptsMax: 0 }, field: 'attemptsMax' },
      { change: { uniqueWhileLive: 'yes' as unknown as boolean }, field: 'uniqueWhileLive' },
      { change: { metadata: Object.fromEntries(idsOf(17).map((key) => [key, 'v'])) }, field: 'metadata' },
    ];
    for (const [round, { change, field }] of bad.entries()) {
      const messages = idsOf(100, `r${round}-`).map((id, index) => ({
        id,
        payload: 1 as JsonValue,
        ...(index === 37 ? change : {}),
      }));
      const outcomes = await queue.enqueue('q', messages);
      expect(outcomes.filter(({ kind }) => kind === 'enqueued')).toHaveLength(99);
      expect(outcomes[37]).toMatchObject({ kind: 'refused', error: { code: 'invalid-input', field } });
    }
    expect(await depth()).toEqual([0, 99 * bad.length, 0]);
  });

  test('NUL and lone surrogates in a payload, a result and an error text pass', async () => {
    const { queue, takeOne } = bind(harness());
    const text = 'a\u0000b\ud800c';
    await queue.enqueue('q', [
      { id: 'a', payload: text, priority: 1 },
      { id: 'b', payload: text, priority: 2 },
    ]);
    const first = await takeOne();
    expect(first.payload).toBe(text);
    await queue.complete('q', [{ ...first, result: text }]);
    expect((await queue.get('q', 'a'))?.result).toBe(text);
    const second = await takeOne();
    await queue.fail('q', [{ ...second, error: `${text}d` }]);
    expect(await queue.get('q', 'b')).toMatchObject({ state: 'errored', error: 'a\ufffdb\ufffdcd' });
  });

  test('whatever was thrown has an error text, of 8 KiB at most', async () => {
    const { queue, enqueue, take } = bind(harness());
    await enqueue(idsOf(4));
    const thrown = [Object.create(null), { code: 7 }, undefined, 'é'.repeat(8_000)];
    const leases = await take({ count: 4 });
    await queue.fail(
      'q',
      leases.map((lease, index) => ({ ...lease, error: thrown[index] as unknown })),
    );
    const errors = await Promise.all(idsOf(4).map(async (id) => (await queue.get('q', id))?.error));
    expect(errors).toEqual(['{}', '{"code":7}', 'undefined', `${'é'.repeat(4_096)}…`]);
  });

  test('a queue that is paused for enqueue refuses messages, a paused dequeue gives none', async () => {
    const { queue, enqueue, takeIds } = bind(harness());
    await enqueue(['a']);
    await enqueue(['held'], { priority: 0 });
    const held = await queue.dequeue('q', { requestId: 'r' });
    await queue.pause('q', { enqueue: true, dequeue: true });
    // What was handed out before is no new message: whoever lost the answer has it again.
    expect(await queue.dequeue('q', { requestId: 'r' })).toEqual(held);
    await queue.complete('q', held);
    expect(await queue.enqueue('q', [{ id: 'b', payload: 1 }])).toMatchObject([
      { kind: 'refused', error: { code: 'enqueue-blocked' } },
    ]);
    expect(await takeIds()).toEqual([]);
    // What is known is not enqueued again, whether the queue takes messages or not.
    expect(await queue.enqueue('q', [{ id: 'a', payload: {} }])).toEqual([
      { kind: 'enqueued', id: 'a', created: false, state: 'pending' },
    ]);
    expect(await queue.enqueue('q', [{ id: 'a', payload: 2 }])).toMatchObject([{ kind: 'conflict' }]);
    await queue.resume('q');
    await enqueue(['b']);
    expect(await takeIds({ count: 5 })).toEqual(['a', 'b']);
  });

  test('a queue is made by its first message, with the default configuration', async () => {
    const { queue, enqueue, take } = bind(harness());
    const { configurationDefault } = await import('../queue/store.js');
    expect(await take()).toEqual([]);
    expect(await queue.queues()).toEqual([]);
    expect(await queue.configuration('q')).toEqual(configurationDefault);
    await enqueue(['a']);
    expect(await queue.queues()).toEqual(['q']);
    expect(await queue.configuration('q')).toEqual(configurationDefault);
  });

  test("a message without its own takes the queue's lease, delay and attempts", async () => {
    const { queue, clock, enqueue, takeOne } = bind(harness());
    await queue.configure('q', { leaseMs: 5_000, delayMs: 1_000, attemptsMax: 9 });
    await enqueue(['a']);
    expect(await queue.get('q', 'a')).toMatchObject({
      state: 'invisible',
      visibleAt: startsAt + 1_000,
      attemptsMax: 9,
    });
    clock.advance(1_000);
    expect((await takeOne()).leaseUntil).toBe(startsAt + 6_000);
  });
}
