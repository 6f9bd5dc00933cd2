/**
 * Runs once before all tests: starts one server for each PostgreSQL that is found, makes the seed of the embedded
 * database, and tells the test processes where they are. Keeps the servers' logs when a test failed.
 */
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import { preparePgliteSeed } from '../../src/database/index.js';
import { type RunServer, startRunServers } from '../../src/testing/index.js';

declare module 'vitest' {
  interface ProvidedContext {
    postgresServers: readonly RunServer[];
    pgliteSeedFile: string;
  }
}

const cacheFolder = fileURLToPath(new URL('../../node_modules/.cache/headgate', import.meta.url));
const failuresFolder = fileURLToPath(new URL('../../.test-failures', import.meta.url));

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const [run, seedFile] = await Promise.all([
    startRunServers({ databaseUrl: process.env['DATABASE_URL'] }),
    preparePgliteSeed(cacheFolder),
  ]);
  project.provide('postgresServers', run.servers);
  project.provide('pgliteSeedFile', seedFile);
  return async () => {
    if (project.vitest.state.getCountOfFailedTests() > 0) {
      for (const file of await run.keepLogs(failuresFolder)) console.error(`server log: ${file}`);
    }
    await run.stop();
  };
}
