/** Every example runs to its end and prints what it says it does. */
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '..');

const outputs: Readonly<Record<string, string>> = {
  'first-queue.ts': 'sent receipt at attempt 2\n',
  'first-feed.ts': 'ann: good morning',
  'first-notification.ts': 'the second one is duplicate, of the same notification: true',
  'order-and-campaign.ts': 'campaign: 500 taken, 500 sent\n',
  'transaction.ts': 'to ship: order-1\n',
  'worker-process.ts': 'SIGTERM: stopping\nsent receipt-17\nstopped\n',
  'testing.ts': 'pass 2\n',
};

describe('the examples', () => {
  it.each(readdirSync(resolve(root, 'examples')).filter((name) => name.endsWith('.ts')))(
    '%s runs',
    { timeout: 120_000 },
    async (name) => {
      const { stdout } = await promisify(execFile)(
        process.execPath,
        ['--import', 'tsx', `examples/${name}`],
        { cwd: root },
      );
      expect(outputs[name]).toBeDefined();
      expect(stdout).toContain(outputs[name]);
    },
  );
});
