/** What is read of one message or of a whole queue. */
import { largeId } from '../large-tables.js';
import { one, rest, type Operation } from './operation.js';

export const reads: Operation[] = [
  [
    'get of a live message',
    one,
    async (store, { last }) =>
      () =>
        store.get({ ...rest, id: largeId(last) }),
  ],
  [
    'get of an ended message',
    one,
    async (store, { completed }) =>
      () =>
        store.get({ ...rest, id: largeId(completed) }),
  ],
  ['get of an unknown id', one, async (store) => () => store.get({ ...rest, id: 'unknown' })],
  [
    'history of an ended message',
    { rows: 10_100, pages: 1_000 },
    async (store, { completed }) =>
      () =>
        store.history({ ...rest, id: largeId(completed) }),
  ],
  [
    'history of a live message',
    { rows: 10_100, pages: 1_000 },
    async (store, { last }) =>
      () =>
        store.history({ ...rest, id: largeId(last) }),
  ],
  ['depth', { rows: 5_000, pages: 1_000 }, async (store) => () => store.depth({ ...rest, where: {} })],
  [
    'depth of a pair',
    { rows: 5_000, pages: 1_000 },
    async (store) => () => store.depth({ ...rest, where: { tenant: 't5' } }),
  ],
  [
    'a step of the depth of two pairs',
    { rows: 45_000, pages: 100_000 },
    async (store) => () => store.depth({ ...rest, where: { kind: 'a', region: 'us' } }),
  ],
  ['oldest', { rows: 100_100, pages: 120_000 }, async (store) => () => store.oldest({ ...rest, where: {} })],
  ['ready', one, async (store) => () => store.ready!({ queues: ['q', 'x'], now: undefined })],
  ['configuration', one, async (store) => () => store.configuration('q')],
  [
    'configure',
    one,
    async (store) => () => store.configure('q', { attemptsMax: 3, type: { kind: 'simple' } }),
  ],
];
