/** What `headgate migrate` does. */
import { noMetrics } from '../../metrics.js';
import { storeConfig, type Environment, type Flags } from '../config.js';
import { createLog } from '../log.js';
import { wire } from '../wire.js';

export async function migrate(flags: Flags, environment: Environment): Promise<void> {
  // opening a database brings it up to date; the log says which migrations that took
  const parts = await wire(storeConfig(flags, environment), {
    log: createLog('info'),
    metrics: noMetrics,
  });
  await parts.stop();
  process.stdout.write('the schemas are up to date\n');
}
