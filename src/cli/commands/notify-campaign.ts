/**
 * `headgate notify campaign …`: streams a file of recipients into a campaign, and steers it. Guarantees that memory is
 * bounded by a batch, and that running it again with the same file sends nothing twice.
 */
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Command } from 'commander';
import { invalidInput, isHeadgateError } from '../../errors.js';
import type { ApiClient } from '../api-client.js';
import { clientCommands, type ClientRun } from '../client-commands.js';
import type { Environment, Flags } from '../config.js';
import { print, table } from '../output.js';
import { number } from '../arguments.js';

type Row = Readonly<Record<string, unknown>>;

const asJson = (flags: Flags) => ({ json: flags['json'] === true });
const begunAt = ({ createdAt, ...row }: Row): Row => ({
  ...row,
  begun: new Date(Number(createdAt)).toISOString(),
});
const show = (progress: Row): string => table([begunAt(progress)]);
const campaignPath = (id: string) => `/v1/campaigns/${encodeURIComponent(id)}`;

const batchMax = 500;
/** The body of a request has at most 1 MiB. */
const batchBytesMax = 500_000;
/** How often a paused campaign is asked whether it goes on. */
const pausedMs = 1_000;

interface Batch {
  readonly recipients: readonly unknown[];
  /** How much of the file lies before its end. */
  readonly done: number;
}

async function* batchesOf(file: string): AsyncGenerator<Batch> {
  const input = file === '-' ? process.stdin : createReadStream(file);
  let recipients: unknown[] = [];
  let bytes = 0;
  let done = 0;
  let lineNumber = 0;
  for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    lineNumber += 1;
    const lineBytes = Buffer.byteLength(line);
    done += lineBytes + 1;
    if (line.trim() === '') continue;
    recipients.push(recipientOf(line, lineNumber));
    bytes += lineBytes;
    if (recipients.length < batchMax && bytes < batchBytesMax) continue;
    yield { recipients, done };
    recipients = [];
    bytes = 0;
  }
  if (recipients.length > 0) yield { recipients, done };
}

function recipientOf(line: string, lineNumber: number): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw invalidInput(`--file, line ${lineNumber}`, line, 'a JSON object a line: {"user":…,"data":{…}}');
  }
}

/** Waits as long as the campaign is paused; an answer that was lost is asked for again by the caller's next run. */
async function give(client: ApiClient, body: object, onPaused: () => void): Promise<Row> {
  for (;;) {
    try {
      return await client.post<Row>('/v1/campaigns', body);
    } catch (error) {
      if (!isHeadgateError(error, 'campaign-paused')) throw error;
      onPaused();
      await new Promise((resolve) => setTimeout(resolve, pausedMs));
    }
  }
}

const start: ClientRun = async (client, flags, id = '') => {
  const { kind, file } = flags as { kind: string; file: string };
  if (file !== '-' && !existsSync(file)) throw invalidInput('--file', file, 'a file that is there, or -');
  const total = file === '-' ? 0 : statSync(file).size;
  const display = total > 0 ? (await import('../progress.js')).createProgressDisplay() : undefined;
  let progress: Row | undefined;
  try {
    for await (const { recipients, done } of batchesOf(file)) {
      const report = (stage: string) => display?.update(stage, Math.min(done, total), total);
      progress = await give(client, { id, kind, recipients }, () => report('paused, waiting; bytes'));
      report('bytes of the recipients');
    }
  } finally {
    display?.end();
  }
  progress ??= await give(client, { id, kind, recipients: [] }, () => {});
  print(progress, asJson(flags), show);
};

const list: ClientRun = async (client, flags) => {
  const query = new URLSearchParams();
  for (const name of ['state', 'limit', 'before'])
    if (flags[name] !== undefined) query.set(name, String(flags[name]));
  const answer = await client.get<{ campaigns: Row[]; next?: string }>(`/v1/campaigns?${query.toString()}`);
  print(
    answer,
    asJson(flags),
    ({ campaigns, next }) =>
      `${table(campaigns.map(begunAt))}${next === undefined ? '' : `\nmore: --before ${next}`}`,
  );
};

const status: ClientRun = async (client, flags, id = '') => {
  print(await client.get<Row>(campaignPath(id)), asJson(flags), show);
};

const move =
  (operation: 'pause' | 'resume' | 'cancel'): ClientRun =>
  async (client, flags, id = '') => {
    print(await client.post<Row>(`${campaignPath(id)}/${operation}`, {}), asJson(flags), show);
  };

export function addNotifyCampaigns(notify: Command, environment: Environment): void {
  clientCommands(notify, environment)('campaigns', 'campaigns, newest first', list)
    .option('--state <state>', 'running, paused, canceled or streamed')
    .option('--limit <number>', '1 to 200', number('--limit'), 20)
    .option('--before <id>', 'go on from here')
    .addHelpText('after', '\nExample:\n  headgate notify campaigns --state running');
  const campaign = notify.command('campaign').description('one kind to many people');
  const add = clientCommands(campaign, environment);
  add(
    'start <id>',
    'give the recipients of a file to a campaign; run again, who is known is passed over',
    start,
  )
    .requiredOption('--kind <kind>', 'what is sent')
    .requiredOption(
      '--file <file>',
      'a JSON object a line: {"user":…,"data":{…},"to":[…]}; - is standard input',
    )
    .addHelpText(
      'after',
      '\nExample:\n  headgate notify campaign start spring --kind promo --file recipients.ndjson',
    );
  add('status <id>', 'how far it has got', status);
  add('pause <id>', 'hold the stream and what waits; deadlines stand still', move('pause'));
  add('resume <id>', 'go on', move('resume'));
  add('cancel <id>', 'end what waits', move('cancel'));
}
