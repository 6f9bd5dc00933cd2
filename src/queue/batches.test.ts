/** Batches that go to the store in steps: every member has its own answer, in its own place. */
import { expect, test } from 'vitest';
import { invalidInput } from '../errors.js';
import { eachByItself } from './batches.js';

test('of a batch in several steps each member has its own answer, also beside refused and repeated ones', async () => {
  const sent: (readonly number[])[] = [];
  const outcomes = await eachByItself<number, number, string>({
    field: 'numbers',
    inputs: [1, 2, -1, 3, 2, 4, 5, 1, -2, 6],
    parse: (input) => {
      if (input < 0) throw invalidInput('number', input, 'at least 0');
      return input;
    },
    refuse: (input) => `refused ${input}`,
    send: async (step) => {
      sent.push(step);
      return step.map((number) => `done ${number}`);
    },
    stepMax: 2,
    keyOf: String,
  });
  expect(sent).toEqual([
    [1, 2],
    [3, 4],
    [5, 6],
  ]);
  expect(outcomes).toEqual([
    'done 1',
    'done 2',
    'refused -1',
    'done 3',
    'done 2',
    'done 4',
    'done 5',
    'done 1',
    'refused -2',
    'done 6',
  ]);
});
