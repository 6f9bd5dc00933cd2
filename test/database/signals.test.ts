import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/database/index.js';
import { createDatabaseSignals, createLocalSignals, type Signals } from '../../src/signals.js';
import { createRecordingLog } from './recording-log.js';
import { testDatabases } from './test-databases.js';

const log = createRecordingLog();
const kinds = [
  {
    name: 'this process',
    open: async () => ({ signals: createLocalSignals({ log }), close: async () => {} }),
  },
  ...testDatabases().map(({ name, open }) => ({
    name,
    open: async () => {
      const database: Database = await open({ log });
      return { signals: createDatabaseSignals(database), close: () => database.close() };
    },
  })),
];

describe.each(kinds)('signals over $name', ({ open }) => {
  let signals: Signals;
  let close = async (): Promise<void> => {};
  beforeAll(async () => {
    ({ signals, close } = await open());
  });
  afterAll(() => close());

  test('reach every subscriber of their topic in the order of publishing, and nobody else', async () => {
    const heard: string[] = [];
    const ends = [
      await signals.subscribe('topic', (payload) => heard.push(`first ${payload}`)),
      await signals.subscribe('topic', (payload) => heard.push(`second ${payload}`)),
      await signals.subscribe('other', (payload) => heard.push(`other ${payload}`)),
    ];
    await signals.publish('topic', 'a');
    await signals.publish('topic', 'b');
    await expect.poll(() => heard).toHaveLength(4);
    expect(heard.filter((text) => text.startsWith('first'))).toEqual(['first a', 'first b']);
    expect(heard.filter((text) => text.startsWith('second'))).toEqual(['second a', 'second b']);
    for (const end of ends) await end();
  });

  test('do not reach who has left', async () => {
    const heard: string[] = [];
    const end = await signals.subscribe('left', (payload) => heard.push(`left ${payload}`));
    await end();
    const endOther = await signals.subscribe('left', (payload) => heard.push(payload));
    await signals.publish('left', 'a');
    await expect.poll(() => heard).toEqual(['a']);
    await endOther();
  });

  test('of a handler that throws stop nobody', async () => {
    const heard: string[] = [];
    const ends = [
      await signals.subscribe('thrown', () => {
        throw new Error('handler');
      }),
      await signals.subscribe('thrown', (payload) => heard.push(payload)),
    ];
    await signals.publish('thrown', 'a');
    await expect.poll(() => heard).toEqual(['a']);
    for (const end of ends) await end();
  });

  test('carry 7,000 bytes and no more', async () => {
    const heard: string[] = [];
    const end = await signals.subscribe('large', (payload) => heard.push(payload));
    const payload = `${'é'.repeat(3_499)}ab`;
    await signals.publish('large', payload);
    await expect.poll(() => heard).toEqual([payload]);
    await expect(signals.publish('large', `${payload}c`)).rejects.toMatchObject({
      code: 'invalid-input',
      field: 'payload',
    });
    await end();
  });

  test.each(['', 'Upper', 'a-b', 'a'.repeat(64)])('refuse the topic %j', async (topic) => {
    await expect(signals.publish(topic, 'a')).rejects.toMatchObject({
      code: 'invalid-input',
      field: 'topic',
    });
    await expect(signals.subscribe(topic, () => {})).rejects.toMatchObject({
      code: 'invalid-input',
      field: 'topic',
    });
  });
});
