import { expect, test } from 'vitest';
import { joined } from './joined.js';

function recorded({
  max = 10,
  isAlike = () => true,
}: {
  max?: number;
  isAlike?: (a: string, b: string) => boolean;
} = {}) {
  const asked: string[][] = [];
  const answers: (() => void)[] = [];
  const ask = joined<string, string>(
    (inputs) =>
      new Promise((resolve, reject) => {
        asked.push([...inputs]);
        answers.push(() =>
          inputs.includes('bad') ? reject(new Error('bad')) : resolve(inputs.map((input) => `${input}!`)),
        );
      }),
    { max, isAlike },
  );
  return { ask, asked, answer: () => answers.shift()?.() };
}

test('the first is asked at once, and what comes meanwhile together', async () => {
  const { ask, asked, answer } = recorded();
  const all = Promise.all(['a', 'b', 'c'].map(ask));
  expect(asked).toEqual([['a']]);
  answer();
  await expect.poll(() => asked).toEqual([['a'], ['b', 'c']]);
  answer();
  expect(await all).toEqual(['a!', 'b!', 'c!']);
});

test('only those that are alike go together, and never more than the bound', async () => {
  const { ask, asked, answer } = recorded({ max: 2, isAlike: (one, other) => one[0] === other[0] });
  const all = Promise.all(['a1', 'a2', 'b1', 'a3', 'a4'].map(ask));
  for (const count of [1, 2, 3, 4]) {
    await expect.poll(() => asked.length).toBe(count);
    answer();
  }
  await all;
  expect(asked).toEqual([['a1'], ['a2', 'a3'], ['b1'], ['a4']]);
});

test('a failure is told those who were asked for together, and the next are asked', async () => {
  const { ask, asked, answer } = recorded({ max: 2 });
  const all = Promise.allSettled(['a', 'bad', 'c', 'd'].map(ask));
  for (const count of [1, 2, 3]) {
    await expect.poll(() => asked.length).toBe(count);
    answer();
  }
  expect((await all).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled']);
});
