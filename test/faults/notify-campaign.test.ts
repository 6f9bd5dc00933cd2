/**
 * A campaign whose process is killed three times, at a provider that throttles some and loses the answer to some: one
 * delivery a recipient, no copy too many, the ledger adds up after each kill, and progress never goes back.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { faultShares, startHttpCounterpart, type ReceivedRequest } from '../../src/testing/index.js';
import { testServers } from '../database/test-databases.js';
import { addsUp, openWorld, quickKinds } from '../notify/world.js';
import { until } from '../../src/testing/until.js';
import { recipientsOf, webhookTo, type CampaignTask } from './notify-campaign-child.js';

const [server] = testServers();
/** As many as a run of all tests can wait for; the long run has the campaign of 10,000. */
const recipients = process.env['HEADGATE_LONG'] === '1' ? 10_000 : 400;
const seed = Number(process.env['HEADGATE_SEED'] ?? Math.floor(Math.random() * 1e9));

describe.skipIf(server === undefined)('a campaign (needs a PostgreSQL server)', () => {
  it(`N09, N14: killed three times, ends with one delivery a recipient (HEADGATE_SEED=${seed})`, {
    timeout: 300_000,
  }, async () => {
    const counterpart = await startHttpCounterpart({
      identify: ({ headers }: ReceivedRequest) => headers['webhook-id'] ?? '',
      faults: faultShares({
        seed,
        shares: [
          [0.1, { kind: 'answer', status: 429 }],
          [0.01, { kind: 'cut', accepts: true }],
          [0.01, { kind: 'cut' }],
        ],
      }),
    });
    const suffix = `campaign_${process.pid}`;
    const task: CampaignTask = { url: await server!.url(), suffix, port: counterpart.port, recipients };
    const database = await server!.open({ poolMax: 6 });
    const world = await openWorld({
      database,
      suffix,
      kinds: quickKinds,
      timings: { marginMs: 1_000 },
      providers: [webhookTo(counterpart.port)],
    });
    const { notify } = world;
    let taken = 0;
    const check = async (): Promise<void> => {
      const progress = await notify.campaigns.progress('c');
      expect(progress.taken).toBeGreaterThanOrEqual(taken);
      taken = progress.taken;
      expect(addsUp(await notify.ledger(), taken)).toBe(true);
    };
    for (const share of [0.1, 0.4, 0.7]) {
      const child = spawn(
        process.execPath,
        [
          '--import',
          'tsx',
          fileURLToPath(new URL('notify-campaign-child.ts', import.meta.url)),
          JSON.stringify(task),
        ],
        { stdio: 'ignore' },
      );
      const exited = once(child, 'exit');
      await until(() => counterpart.taken.size >= share * recipients, { boundMs: 100_000 });
      child.kill('SIGKILL');
      await exited;
      await check();
    }
    const worker = notify.worker({ slots: 20, floors: false, leaseMs: 1_000 });
    await worker.start();
    await notify.campaigns.run({ id: 'c', kind: 'promo', recipients: recipientsOf(task), batchSize: 100 });
    await until(async () => (await notify.ledger()).waiting === 0, { boundMs: 100_000 });
    await check();
    const { rows } = await database.query<{ deliveries: string; users: string }>(
      `select count(*) as deliveries, count(distinct user_id) as users from ${world.schema}.deliveries`,
    );
    expect(rows[0]).toEqual({ deliveries: String(recipients), users: String(recipients) });
    const ledger = await notify.ledger();
    const copies = [...counterpart.taken.values()];
    expect(Math.max(...copies)).toBe(1);
    // What is lost is among the unknown ones, and what is called sent did arrive.
    expect(recipients - copies.length).toBeLessThanOrEqual(ledger.ambiguous);
    expect(ledger.sent).toBeLessThanOrEqual(copies.length);
    expect(ledger).toMatchObject({ accepted: recipients, failed: 0, expired: 0, suppressed: 0 });
    expect(await notify.campaigns.progress('c')).toMatchObject({ state: 'streamed', taken: recipients });
    await worker.stop();
    await world.stop();
    await database.close();
    await counterpart.stop();
  });
});
