/**
 * The order in which the files of tests are started: those that take long first, because one that begins when the others
 * have ended leaves the other workers idle. A file that is not named here is started after them, the larger ones first.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** By the time they take, the longest first; files below some seconds need no place. */
const long = [
  'conformance/queue.test.ts',
  'conformance/worker.test.ts',
  'faults/redis-cluster.test.ts',
  'simulation/feed-world.test.ts',
  'cli/start.test.ts',
  'faults/worker-server.test.ts',
  'simulation/feed-storm.test.ts',
  'conformance/feed/holes.test.ts',
  'faults/redis-serve.test.ts',
  'conformance/feed/visibility.test.ts',
  'simulation/queue-storm.test.ts',
  'cli/queue.test.ts',
  'browser/dashboard.test.ts',
  'database/pglite.test.ts',
  'conformance/feed-redis-cluster.test.ts',
  'conformance/feed/paging.test.ts',
  'cli/notify.test.ts',
  'conformance/feed/load.test.ts',
  'examples.test.ts',
  'browser/notify.test.ts',
  'faults/worker-store-away.test.ts',
  'simulation/feed-planted-faults.test.ts',
  'conformance/feed/graph.test.ts',
  'notify/cases-providers.test.ts',
  'faults/worker-processes.test.ts',
  'conformance/queue/storage.test.ts',
  'faults/notify-kill.test.ts',
  'conformance/queue/cases.test.ts',
  'faults/feed-redis.test.ts',
  'conformance/queue-redis-cluster.test.ts',
  'conformance/feed/reposts.test.ts',
  'faults/redis-durability.test.ts',
  'database/folder-lock.test.ts',
  'faults/redis-history.test.ts',
  'notify/cases-wire.test.ts',
  'notify/door.test.ts',
  'faults/feed-redis-serve.test.ts',
  'notify/cases-door.test.ts',
  'notify/adapters.test.ts',
  'database/listen.test.ts',
  'cli/failure.test.ts',
];

export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeOf = ({ moduleId }: TestSpecification): number => {
      const place = long.findIndex((name) => moduleId.endsWith(`/test/${name}`));
      return place < 0 ? long.length : place;
    };
    // The sort is stable: among those without a place the order stays that of the base.
    return (await super.sort(files)).sort((one, other) => placeOf(one) - placeOf(other));
  }
}
