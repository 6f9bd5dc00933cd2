/** What the holder of a message says of it. */
import { held, hundred, one, request, rest, results, type Operation } from './operation.js';

export const settlings: Operation[] = [
  [
    'complete of one',
    one,
    async (store) => {
      const leases = results(await held(store, 1));
      return () => store.complete({ ...rest, leases });
    },
  ],
  [
    'complete of a hundred',
    hundred,
    async (store) => {
      const leases = results(await held(store, 100));
      return () => store.complete({ ...rest, leases });
    },
  ],
  [
    'complete repeated',
    one,
    async (store) => {
      const leases = results(await held(store, 1));
      await store.complete({ ...rest, leases });
      return () => store.complete({ ...rest, leases });
    },
  ],
  [
    'complete in an exclusive queue',
    one,
    async (store) => {
      const leases = results(await held(store, 1, { queue: 'x' }));
      return () => store.complete({ ...rest, queue: 'x', leases });
    },
  ],
  [
    'complete and dequeue',
    one,
    async (store) => {
      const complete = results(await held(store, 1));
      return () => store.settleAndDequeue!({ ...rest, complete, dequeue: request(1) });
    },
  ],
  [
    'extend',
    one,
    async (store) => {
      const leases = (await held(store, 1)).map((lease) => ({ ...lease, leaseMs: 3_700_000 }));
      return () => store.extend({ ...rest, leases });
    },
  ],
  [
    'fail with a retry',
    one,
    async (store) => {
      const leases = (await held(store, 1)).map((lease) => ({
        ...lease,
        error: 'e',
        retryDelayMs: 3_600_000,
      }));
      return () => store.fail({ ...rest, leases });
    },
  ],
  [
    'fail for good',
    one,
    async (store) => {
      const leases = (await held(store, 1)).map((lease) => ({
        ...lease,
        error: 'e',
        retryDelayMs: undefined,
      }));
      return () => store.fail({ ...rest, leases });
    },
  ],
  [
    'release',
    one,
    async (store) => {
      const leases = (await held(store, 1)).map((lease) => ({ ...lease, delayMs: 0, refund: true }));
      return () => store.release({ ...rest, leases });
    },
  ],
];
