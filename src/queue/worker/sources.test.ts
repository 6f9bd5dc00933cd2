import { expect, test } from 'vitest';
import { shareOut, Source } from './sources.js';

const canAsk = (): boolean => true;
const shares = (sources: readonly Source[], count: number) =>
  Object.fromEntries(
    [...shareOut({ sources, count, slots: 10, canAsk })].map(([source, share]) => [source.queue, share]),
  );

test('a count is divided in proportion to the weights', () => {
  const sources = [new Source('a', 3, []), new Source('b', 1, [])];
  expect(shares(sources, 40)).toEqual({ a: 30, b: 10 });
});

test('single slots are given in turn, so that the proportion holds over time', () => {
  const sources = [new Source('a', 3, []), new Source('b', 1, []), new Source('c', 1, [])];
  const turns: string[] = [];
  for (let turn = 0; turn < 50; turn += 1) {
    const [[source, count]] = [...shareOut({ sources, count: 1, slots: 1, canAsk })] as [[Source, number]];
    const call = source.ask(count);
    source.answered({ call, asked: count, got: count });
    turns.push(source.queue);
  }
  expect(turns.filter((name) => name === 'a')).toHaveLength(30);
  expect(turns.filter((name) => name === 'b')).toHaveLength(10);
});

test('a queue that is being asked is waited for when the others are a round ahead', () => {
  const [a, b] = [new Source('a', 1, []), new Source('b', 1, [])];
  a.ask(1);
  const canAskB = (source: Source): boolean => source === b;
  expect(shareOut({ sources: [a, b], count: 100, slots: 10, canAsk: canAskB }).get(b)).toBeLessThanOrEqual(
    10,
  );
});

test('a queue that was empty is not given what it did not need', () => {
  const [a, b] = [new Source('a', 1, []), new Source('b', 1, [])];
  b.answered({ call: b.ask(5), asked: 5, got: 0 });
  for (let turn = 0; turn < 100; turn += 1) a.answered({ call: a.ask(10), asked: 10, got: 10 });
  shares([a, b], 1);
  b.hint();
  expect(shares([a, b], 20)).toEqual({ a: 10, b: 10 });
});

test('an empty answer says nothing when a later call found something or a hint came after it', () => {
  const source = new Source('a', 1, []);
  const [first, second] = [source.ask(1), source.ask(1)];
  source.answered({ call: second, asked: 1, got: 1 });
  source.answered({ call: first, asked: 1, got: 0 });
  expect(source.state).toBe('full');
  const third = source.ask(1);
  source.hint();
  source.answered({ call: third, asked: 1, got: 0 });
  expect(source.state).toBe('full');
  source.answered({ call: source.ask(1), asked: 1, got: 0 });
  expect(source.state).toBe('empty');
});
