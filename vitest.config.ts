import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    globalSetup: ['test/database/global-setup.ts'],
    // A process for each file: worker threads, signals and listening sockets must not meet in one.
    pool: 'forks',
    // The servers want a core as well.
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Waiting for a condition costs nothing when it holds; a loaded machine must not fail a test.
    expect: { poll: { timeout: 20_000, interval: 20 } },
  },
});
