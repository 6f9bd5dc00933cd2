/** Binds the log port to pino: JSON lines on standard error, so that standard output stays for people and programs. */
import { pino } from 'pino';
import type { Log } from '../log.js';

export function createLog(level: string): Log {
  return pino(
    { level, base: null, redact: ['*.password', '*.connectionString', '*.authorization'] },
    pino.destination({ dest: 2, sync: true }),
  );
}
