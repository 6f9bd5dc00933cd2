import { expect, it } from 'vitest';
import {
  formatAgo,
  formatBytes,
  formatCount,
  formatRate,
  formatSeconds,
  formatShare,
  secondSteps,
} from './format.js';

it('seconds are written in their two largest units', () => {
  const cases: [number, string][] = [
    [0, '0 s'],
    [0.42, '0.4 s'],
    [9.96, '10 s'],
    [59.4, '59 s'],
    [60, '1 min'],
    [185, '3 min 5 s'],
    [7_800, '2 h 10 min'],
    [356_400, '4 d 3 h'],
  ];
  for (const [seconds, text] of cases) expect(formatSeconds(seconds)).toBe(text);
});

it('the steps of an axis are written with one unit each', () => {
  for (const seconds of secondSteps) expect(formatSeconds(seconds)).toMatch(/^[\d.]+ (s|min|h|d)$/);
});

it('a share below everything is never rounded up to 100 %', () => {
  expect(formatShare(99_999, 100_000)).toBe('99.99 %');
  expect(formatShare(5, 5)).toBe('100 %');
});

it('counts and rates stay short', () => {
  expect(formatCount(123_456)).toBe('123,456');
  expect(formatCount(7_654_321)).toBe('7.7M');
  expect(formatRate(0.25)).toBe('0.3');
  expect(formatRate(1_234.5)).toBe('1,235');
});

it('bytes keep one to three digits before the point', () => {
  expect([0, 812, 8_192, 49_152, 12_400_000, 3e9, 5e15].map(formatBytes)).toEqual([
    '0 B',
    '812 B',
    '8.2 kB',
    '49.2 kB',
    '12.4 MB',
    '3.0 GB',
    '5,000.0 TB',
  ]);
});

it('an age says past and future apart', () => {
  expect(formatAgo(1_000, 1_400)).toBe('now');
  expect(formatAgo(0, 12_000)).toBe('12 s ago');
  expect(formatAgo(60_000, 0)).toBe('in 1 min');
});
