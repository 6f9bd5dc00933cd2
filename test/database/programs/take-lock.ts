/** Tries to take a folder at a given moment, holds it for a while, and prints what came of it. */
import { setTimeout as delay } from 'node:timers/promises';
import { lockFolder } from '../../../src/database/index.js';

const [folder = '', atMs = '0', holdMs = '0'] = process.argv.slice(2);
await delay(Math.max(0, Number(atMs) - Date.now()));
try {
  const lock = await lockFolder(folder);
  const from = process.hrtime.bigint();
  if (Number(holdMs) < 0) process.kill(process.pid, 'SIGKILL');
  await delay(Number(holdMs));
  const to = process.hrtime.bigint();
  await lock.release();
  console.log(`held ${from} ${to}`);
} catch (error) {
  console.log((error as { code?: string }).code ?? String(error));
}
