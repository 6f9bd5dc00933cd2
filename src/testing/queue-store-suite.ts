/**
 * The suite that every queue store passes, alike: what the port promises, one fact a test. A store of your own is a
 * store once this is green.
 *
 * @example
 * queueStoreSuite({ name: 'memory', open: async () => ({ store: createMemoryQueueStore(), close: async () => {} }) });
 */
import { afterEach, beforeEach, describe } from 'vitest';
import { enqueueTests } from './queue-suite-enqueue.js';
import { exclusiveTests } from './queue-suite-exclusive.js';
import { filterTests } from './queue-suite-filters.js';
import { QueueHarness, type QueueStoreSuiteOptions } from './queue-suite-harness.js';
import { leaseTests } from './queue-suite-leases.js';
import { operateTests } from './queue-suite-operate.js';
import { orderTests } from './queue-suite-order.js';
import { retentionTests } from './queue-suite-retention.js';
import { settleTests } from './queue-suite-settle.js';
import { togetherTests } from './queue-suite-together.js';
import { waitingTests } from './queue-suite-waiting.js';

export type { OpenedQueueStore, QueueStoreSuiteOptions } from './queue-suite-harness.js';

export function queueStoreSuite(options: QueueStoreSuiteOptions): void {
  describe(`queue store ${options.name}`, () => {
    let current: QueueHarness | undefined;
    const harness = (): QueueHarness => {
      if (!current) throw new Error('no test is running');
      return current;
    };

    beforeEach(async () => {
      current = new QueueHarness(await options.open());
    });
    afterEach(async () => {
      await current?.close();
      current = undefined;
    });

    describe('enqueue', () => {
      enqueueTests(harness);
    });
    describe('order and due times', () => {
      orderTests(harness);
    });
    describe('leases', () => {
      leaseTests(harness);
    });
    describe('settling', () => {
      settleTests(harness);
    });
    describe('exclusivity', () => {
      exclusiveTests(harness);
    });
    describe('filters and depth', () => {
      filterTests(harness);
    });
    describe('operations', () => {
      operateTests(harness);
    });
    describe('retention and history', () => {
      retentionTests(harness);
    });
    describe('calls at once', () => {
      togetherTests(harness);
    });
    describe('waiting', () => {
      waitingTests(harness);
    });
  });
}
