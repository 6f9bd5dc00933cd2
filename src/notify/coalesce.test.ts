import { describe, expect, it } from 'vitest';
import { HeadgateError } from '../errors.js';
import { Coalescer, type CoalescerOptions } from './coalesce.js';

/** Answers each text in capitals, and notes which ones came together. */
function capitals(options: Partial<CoalescerOptions<string, string>> = {}) {
  const batches: string[][] = [];
  const alone: string[] = [];
  const coalescer = new Coalescer<string, string>({
    sizeMax: 3,
    sideBySide: 1,
    keyOf: (text) => text,
    async together(texts) {
      batches.push([...texts]);
      return texts.map((text) => text.toUpperCase());
    },
    async alone(text) {
      alone.push(text);
      if (text === 'bad') throw new Error('bad');
      return text.toUpperCase();
    },
    ...options,
  });
  const call = (...texts: string[]) => Promise.allSettled(texts.map((text) => coalescer.call(text)));
  return { batches, alone, call };
}

const answers = (settled: PromiseSettledResult<string>[]) =>
  settled.map((one) => (one.status === 'fulfilled' ? one.value : String(one.reason.message)));

describe('calls of the same moment', () => {
  it('go together, in order and in batches of a bounded size, and each gets its own answer', async () => {
    const { batches, call } = capitals();
    expect(answers(await call('a', 'b', 'c', 'd'))).toEqual(['A', 'B', 'C', 'D']);
    expect(batches).toEqual([['a', 'b', 'c'], ['d']]);
  });

  it('of the same key come one after the other', async () => {
    const { batches, call } = capitals();
    expect(answers(await call('a', 'a', 'b', 'a'))).toEqual(['A', 'A', 'B', 'A']);
    expect(batches).toEqual([['a', 'b'], ['a'], ['a']]);
  });

  it('of different groups do not go together', async () => {
    const { batches, call } = capitals({ groupOf: (text) => text.length });
    await call('a', 'bb', 'c');
    expect(batches).toEqual([['a', 'c'], ['bb']]);
  });

  it('that are busy are made alone', async () => {
    const together = async (texts: readonly string[]) =>
      texts.map((text) => (text === 'b' ? undefined : text));
    const { alone, call } = capitals({ together });
    expect(answers(await call('a', 'b'))).toEqual(['a', 'B']);
    expect(alone).toEqual(['b']);
  });

  it('are made alone when one spoils the batch, which then fails alone', async () => {
    const together = () => Promise.reject(new Error('spoiled'));
    const { call } = capitals({ together });
    expect(answers(await call('a', 'bad', 'c'))).toEqual(['A', 'bad', 'C']);
  });

  it('fail together when the database is away', async () => {
    const together = () => Promise.reject(new HeadgateError('database-unavailable', 503, 'away'));
    const { alone, call } = capitals({ together });
    expect(answers(await call('a', 'b'))).toEqual(['away', 'away']);
    expect(alone).toEqual([]);
  });
});
