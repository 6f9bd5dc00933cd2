import { describe, expect, test } from 'vitest';
import { AsyncLocalStorage } from 'node:async_hooks';
import { Gather } from './gather.js';

interface Sent {
  readonly inputs: readonly string[];
  answer(): void;
  fail(error: Error): void;
}

/** A server in the hands of the test: statements are answered when it says so, each input by itself in capitals. */
function open(
  fits: (inputs: readonly string[], input: string) => boolean = () => true,
  { together = false } = {},
) {
  const sent: Sent[] = [];
  const gather = new Gather<string, string>({
    send: (inputs) =>
      new Promise((resolve, reject) => {
        sent.push({
          inputs,
          answer: () => resolve(inputs.map((input) => input.toUpperCase())),
          fail: reject,
        });
      }),
    sizeOf: (input) => (input.startsWith('big') ? 400 : 1),
    fits,
    together,
    isRefused: (error) => error === refusal,
  });
  return { sent, run: (input: string, queue = 'q') => gather.run(queue, input) };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));
const refusal = new RangeError('no');

describe('calls that come together', () => {
  test('the first two go at once, what comes meanwhile goes together, each is answered by itself', async () => {
    const { sent, run } = open();
    const calls = ['a', 'b', 'c', 'd', 'e'].map((input) => run(input));
    expect(sent.map(({ inputs }) => inputs)).toEqual([['a'], ['b']]);
    sent[1]!.answer();
    await turn();
    expect(sent[2]!.inputs).toEqual(['c', 'd', 'e']);
    sent[0]!.answer();
    sent[2]!.answer();
    expect(await Promise.all(calls)).toEqual(['A', 'B', 'C', 'D', 'E']);
  });

  test('asked to, those of one turn all go together, and whoever was answered together asks together again', async () => {
    const { sent, run } = open(undefined, { together: true });
    const twice = async (input: string) => [await run(input), await run(`${input}${input}`)];
    const calls = ['a', 'b', 'c'].map(twice);
    await turn();
    expect(sent.map(({ inputs }) => inputs)).toEqual([['a', 'b', 'c']]);
    sent[0]!.answer();
    await turn();
    expect(sent.slice(1).map(({ inputs }) => inputs)).toEqual([['aa', 'bb', 'cc']]);
    sent[1]!.answer();
    expect((await Promise.all(calls)).flat()).toEqual(['A', 'AA', 'B', 'BB', 'C', 'CC']);
  });

  test('queues do not wait for each other, and a statement has a size', async () => {
    const { sent, run } = open();
    void run('a');
    void run('b');
    void run('big1');
    void run('big2');
    void run('x', 'other');
    expect(sent.map(({ inputs }) => inputs)).toEqual([['a'], ['b'], ['x']]);
    sent[0]!.answer();
    await turn();
    expect(sent[3]!.inputs).toEqual(['big1']);
  });

  test('what does not fit goes with the next, in order', async () => {
    const { sent, run } = open((inputs, input) => !inputs.includes(input));
    for (const input of ['a', 'b', 'c', 'c', 'd']) void run(input);
    sent[0]!.answer();
    sent[1]!.answer();
    await turn();
    expect(sent.slice(2).map(({ inputs }) => inputs)).toEqual([['c'], ['c', 'd']]);
  });

  test('what the server refuses as a whole is sent one by one', async () => {
    const { sent, run } = open();
    const calls = ['a', 'b', 'c', 'bad', 'd'].map((input) => run(input).catch((error: unknown) => error));
    sent[0]!.answer();
    sent[1]!.answer();
    await turn();
    sent[2]!.fail(refusal);
    await turn();
    for (const { inputs, answer, fail } of sent.slice(3)) {
      if (inputs[0] === 'bad') fail(refusal);
      else answer();
    }
    expect(await Promise.all(calls)).toEqual(['A', 'B', 'C', refusal, 'D']);
  });

  test('when the connection is lost, who came before the statement fails with it and who came after goes on', async () => {
    const { sent, run } = open((_, input) => input !== 'alone');
    const gone = new Error('the database cannot be reached');
    const early = ['a', 'b', 'c', 'alone'].map((input) => run(input).catch((error: unknown) => error));
    sent[0]!.answer();
    await turn();
    expect(sent[2]!.inputs).toEqual(['c']);
    const waited = performance.now();
    while (performance.now() === waited);
    const late = run('late');
    sent[2]!.fail(gone);
    expect(await early[2]).toBe(gone);
    expect(await early[3]).toBe(gone);
    sent[1]!.answer();
    await turn();
    sent.at(-1)!.answer();
    expect(await late).toBe('LATE');
  });

  test('a statement runs in the context of none of its callers, and each caller is asked in its own', async () => {
    const storage = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const gather = new Gather<string, string>({
      send: async (inputs) => {
        seen.push(storage.getStore());
        await turn();
        return inputs;
      },
      sizeOf: () => 1,
      fits: () => true,
      check: () => {
        if (storage.getStore() === 'inside') throw new Error('not here');
      },
    });
    const calls = ['a', 'b', 'c', 'd'].map((input) =>
      storage.run(`of ${input}`, () => gather.run('q', input)),
    );
    await expect(storage.run('inside', () => gather.run('q', 'e'))).rejects.toThrow('not here');
    expect(await Promise.all(calls)).toEqual(['a', 'b', 'c', 'd']);
    expect(seen).toEqual([undefined, undefined, undefined]);
  });
});
