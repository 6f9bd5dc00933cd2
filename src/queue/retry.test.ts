import { expect, test } from 'vitest';
import {
  failureOf,
  NoRetryError,
  ReleaseError,
  resolveRetry,
  retryDefaults,
  RetryError,
  retryDelayMs,
} from './retry.js';

const retry = resolveRetry({ delayMs: 100, delayMaxMs: 1_000, factor: 2 });
const failure = (thrown: unknown, attempt = 1) => failureOf({ thrown, attempt, retry, random: () => 0.5 });

test('the bound of the delay grows with each attempt up to its greatest value', () => {
  const delays = [1, 2, 3, 4, 5, 500].map((attempt) =>
    retryDelayMs({ attempt, retry: { ...retry, jitter: false }, random: () => 0.5 }),
  );
  expect(delays).toEqual([100, 200, 400, 800, 1_000, 1_000]);
});

test('full jitter draws from nothing to the bound', () => {
  const at = (random: number) => retryDelayMs({ attempt: 2, retry, random: () => random });
  expect([at(0), at(0.5), at(0.999999)]).toEqual([0, 100, 200]);
});

test('a thrown error goes back with a drawn delay and what it says', () => {
  expect(failure(new TypeError('no'))).toEqual({
    kind: 'fail',
    error: expect.stringMatching(/^TypeError: no\n/),
    retryDelayMs: 50,
  });
  expect(failure('plain')).toEqual({ kind: 'fail', error: 'plain', retryDelayMs: 50 });
});

test('an error with retry: false is errored at once, whatever its class', () => {
  expect(failure(new NoRetryError('bad'))).toMatchObject({ kind: 'fail', retryDelayMs: undefined });
  expect(failure(Object.assign(new Error('bad'), { retry: false }))).toMatchObject({
    retryDelayMs: undefined,
  });
});

test('a handler may ask for a delay of its own, or give back without a spent attempt', () => {
  expect(failure(new RetryError('later', { retryDelayMs: 7_000 }))).toMatchObject({ retryDelayMs: 7_000 });
  expect(failure(new ReleaseError('closed', { delayMs: 30 }))).toEqual({ kind: 'release', delayMs: 30 });
});

test('a delay that is no delay is refused where it is made, and ignored on a foreign error', () => {
  expect(() => new RetryError('x', { retryDelayMs: -1 })).toThrow(
    expect.objectContaining({ field: 'retryDelayMs' }),
  );
  expect(failure(Object.assign(new Error('x'), { retryDelayMs: Number.NaN }))).toMatchObject({
    retryDelayMs: 50,
  });
});

test.each([
  ['retry.delayMs', { delayMs: -1 }],
  ['retry.delayMaxMs', { delayMaxMs: Number.POSITIVE_INFINITY }],
  ['retry.factor', { factor: 0.5 }],
])('%s is refused by name', (field, given) => {
  expect(() => resolveRetry(given)).toThrow(expect.objectContaining({ field }));
  expect(resolveRetry()).toEqual(retryDefaults);
});
