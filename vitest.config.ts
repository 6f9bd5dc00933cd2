import { defineConfig } from 'vitest/config';
import { LongFirst } from './test/long-first.js';

/** The long forms hold the limits in time of their cases, so each file has the machine for itself; see CONTRIBUTING.md. */
const isLong = process.env['HEADGATE_LONG'] === '1';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    globalSetup: ['test/database/global-setup.ts'],
    // A process for each file: worker threads, signals and listening sockets must not meet in one.
    pool: 'forks',
    // One more than the two cores of a small machine: a third of the time is spent waiting, for a lease, a failover, a process.
    maxWorkers: isLong ? 1 : 3,
    sequence: { sequencer: LongFirst },
    testTimeout: isLong ? 600_000 : 60_000,
    hookTimeout: isLong ? 600_000 : 60_000,
    // Waiting for a condition costs nothing when it holds; a loaded machine must not fail a test.
    expect: { poll: { timeout: 20_000, interval: 20 } },
  },
});
