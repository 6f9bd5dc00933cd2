/**
 * The other side: the same pipeline as one builds it on BullMQ. The same key, mark and outcome rows in the same database,
 * written with prepared statements by their ids; the queue holds a job with the delivery's id.
 */
import { createRequire } from 'node:module';
import { Pool } from 'pg';
import { renderOrder } from './render.js';
import { Counterpart, measure, type SideTask } from './side.js';

/** As much as is used of the peer, which is installed in a folder of its own. */
interface BullMq {
  readonly Queue: new (
    name: string,
    options: object,
  ) => {
    add(name: string, data: { readonly id: string }, options: object): Promise<unknown>;
    close(): Promise<void>;
  };
  readonly Worker: new (
    name: string,
    handler: (job: { readonly data: { readonly id: string } }) => Promise<void>,
    options: object,
  ) => {
    run(): Promise<void>;
    pause(): Promise<void>;
    resume(): void;
    close(): Promise<void>;
    on(event: 'error', handler: (error: Error) => void): void;
  };
}

const { Queue, Worker } = createRequire(new URL('../../../peers/package.json', import.meta.url))(
  'bullmq',
) as BullMq;

const task = JSON.parse(process.argv[2] as string) as SideTask;
const counterpart = new Counterpart();
const { hostname, port } = new URL(task.redisUrl);
const connection = { host: hostname, port: Number(port), maxRetriesPerRequest: null };
const pool = new Pool({ connectionString: task.databaseUrl, max: 10 });
await pool.query(`
  create table notifications (id bigint generated always as identity primary key, user_id text not null, kind text not null,
    key text not null, created_at timestamptz not null default now(), unique (user_id, kind, key));
  create table deliveries (id text primary key, notification bigint not null references notifications, state text not null,
    address text not null, content text not null, attempts integer not null default 0, message_id text,
    sending_until timestamptz, sent_at timestamptz);
  create index on deliveries (sending_until) where state = 'sending'`);

const accept = `
  with n as (insert into notifications (user_id, kind, key) values ($1, 'order', $2) on conflict do nothing returning id)
  insert into deliveries (id, notification, state, address, content)
  select 'd' || n.id, n.id, 'waiting', $3, $4 from n returning id`;
const mark = `
  update deliveries set state = 'sending', attempts = attempts + 1, sending_until = now() + interval '15 s'
  where id = $1 and state = 'waiting' returning attempts, address, content`;
const outcome = `
  update deliveries set state = 'sent', message_id = $3, sent_at = now(), sending_until = null
  where id = $1 and state = 'sending' and attempts = $2`;

const queue = new Queue('notify', { connection });
const worker = new Worker(
  'notify',
  async ({ data: { id } }) => {
    const { rows } = await pool.query({ name: 'mark', text: mark, values: [id] });
    if (rows[0] === undefined) return;
    const answer = await counterpart.take(id);
    const messageId = answer.kind === 'sent' ? answer.messageId : undefined;
    await pool.query({ name: 'outcome', text: outcome, values: [id, rows[0].attempts, messageId] });
  },
  { connection, concurrency: task.slots, autorun: false, removeOnComplete: { count: 1_000 } },
);
worker.on('error', (error) => process.stderr.write(`${error.message}\n`));
let running = false;
const answer = await measure(
  task,
  {
    async send(index) {
      const content = await renderOrder(index);
      const values = [`u${index % 1_000}`, `order-${index}`, 'a@example.test', JSON.stringify(content)];
      const { rows } = await pool.query({ name: 'accept', text: accept, values });
      if (rows[0] !== undefined)
        await queue.add('send', { id: rows[0].id }, { jobId: rows[0].id, attempts: 5 });
    },
    async start() {
      if (running) return worker.resume();
      running = true;
      void worker.run();
    },
    pause: () => worker.pause(),
    async written() {
      const { rows } = await pool.query(
        `select count(*)::integer as count from deliveries where state = 'sent'`,
      );
      return rows[0].count as number;
    },
  },
  counterpart,
);
await worker.close();
await queue.close();
await pool.end();
process.stdout.write(`${JSON.stringify(answer)}\n`);
process.exit(0);
