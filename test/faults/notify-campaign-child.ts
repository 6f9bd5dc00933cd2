/** A process that streams a campaign in and delivers it, until it is killed. Run by notify-campaign.test.ts. */
import { openPostgres } from '../../src/database/index.js';
import { createWebhookProvider, type Recipient } from '../../src/notify/index.js';
import { openWorld, quickKinds } from '../notify/world.js';

export interface CampaignTask {
  readonly url: string;
  readonly suffix: string;
  readonly port: number;
  readonly recipients: number;
}

export function* recipientsOf({
  recipients,
  port,
}: Pick<CampaignTask, 'recipients' | 'port'>): Generator<Recipient> {
  for (let index = 0; index < recipients; index += 1) {
    const to = [{ channel: 'webhook', address: `http://127.0.0.1:${port}/` } as const];
    yield { user: `u${index}`, data: { what: 'boots' }, to };
  }
}

export const webhookTo = (port: number) =>
  createWebhookProvider({ secrets: ['secret'], timeoutMs: 1_000, allow: [`127.0.0.1:${port}`] });

if (process.argv[2] !== undefined) {
  const task = JSON.parse(process.argv[2]) as CampaignTask;
  const database = await openPostgres({ connectionString: task.url, poolMax: 6 });
  const { notify } = await openWorld({
    database,
    suffix: task.suffix,
    kinds: quickKinds,
    timings: { marginMs: 1_000 },
    providers: [webhookTo(task.port)],
  });
  await notify.worker({ slots: 20, floors: false, leaseMs: 1_000 }).start();
  await notify.campaigns.run({ id: 'c', kind: 'promo', recipients: recipientsOf(task), batchSize: 100 });
  setTimeout(() => process.exit(3), 60_000);
}
