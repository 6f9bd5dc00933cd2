/** Delivery of events to listeners, alone. */
import { expect, test } from 'vitest';
import { silentLog } from '../log.js';
import { EventDispatcher } from './events.js';
import type { MessageEvent } from './message.js';

const event = (version: number): MessageEvent => ({
  queue: 'q',
  id: 'm',
  version,
  from: undefined,
  to: 'pending',
  at: 0,
  attempt: 0,
  metadata: {},
  incarnation: '1',
});

test('a listener that has ended its subscription is told nothing more, and one that throws is told on', async () => {
  const warnings: object[] = [];
  const log = { ...silentLog, warn: (fields: object) => void warnings.push(fields) };
  const dispatcher = new EventDispatcher({ eventsMax: 100, log, onDropped: () => {} });
  const told: number[] = [];
  const thrown: number[] = [];
  const end = dispatcher.subscribe(({ version }) => {
    told.push(version);
    if (version === 2) end();
  });
  dispatcher.subscribe(({ version }) => {
    thrown.push(version);
    throw new Error('a listener of the test');
  });
  dispatcher.publish([1, 2, 3, 4].map(event));
  await expect.poll(() => thrown).toEqual([1, 2, 3, 4]);
  expect(told).toEqual([1, 2]);
  expect(warnings).toMatchObject([{ queue: 'q', message: 'm', failures: 1 }]);
});
