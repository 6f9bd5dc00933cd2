/**
 * What an acknowledged change survives: read from the server's settings, said in words, and refused where it is less than what
 * was asked for. docs/reference/queue-redis.md has the table.
 */
import type { Redis } from 'ioredis';
import type { Log } from '../../log.js';
import type { Confirmation } from './confirmation.js';
import { redisQueueError } from './errors.js';
import { type RedisDurability, type RedisQueueStoreOptions, silenceDefaultMs } from './options.js';

export interface ServerSettings {
  readonly version: string;
  readonly appendOnly: boolean;
  /** `always`, `everysec` or `no`; undefined where the server does not tell. */
  readonly appendFsync: string | undefined;
  readonly evicts: boolean;
  readonly replicas: number;
  /** Whether it can be asked what is on the disks: it has WAITAOF. */
  readonly tellsFlushes: boolean;
}

export interface RedisDurabilityReport {
  readonly durability: RedisDurability;
  readonly settings: ServerSettings;
  /** Replicas that confirm each change; 0 for none. */
  readonly confirmedBy: number;
  /** What each call waits for beside the answer; undefined for nothing. */
  readonly confirmation: Confirmation | undefined;
  /** One sentence. */
  readonly survives: string;
}

async function readSettings(server: Redis): Promise<ServerSettings> {
  const info = await server.info();
  const field = (name: string): string => new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1]?.trim() ?? '';
  return {
    version: field('redis_version'),
    appendOnly: field('aof_enabled') === '1',
    appendFsync: await readFsync(server),
    evicts: field('maxmemory') !== '0' && field('maxmemory_policy') !== 'noeviction',
    replicas: Number(field('connected_slaves')),
    tellsFlushes: await hasWaitAof(server),
  };
}

/** Asked of the server, not read off its version: Valkey counts on its own. */
async function hasWaitAof(server: Redis): Promise<boolean> {
  try {
    const [command] = (await server.call('COMMAND', 'INFO', 'WAITAOF')) as unknown[];
    return Array.isArray(command);
  } catch {
    return false;
  }
}

/** Hosted servers forbid CONFIG; then it is not known, and strict refuses. */
async function readFsync(server: Redis): Promise<string | undefined> {
  try {
    const reply = (await server.config('GET', 'appendfsync')) as string[];
    return reply[1];
  } catch {
    return undefined;
  }
}

/** The weakest of several servers. */
function weakest(all: readonly ServerSettings[]): ServerSettings {
  const fsyncs = ['no', undefined, 'everysec', 'always'];
  const [first] = all;
  return {
    version: first?.version ?? '',
    appendOnly: all.every(({ appendOnly }) => appendOnly),
    appendFsync: fsyncs.find((fsync) => all.some(({ appendFsync }) => appendFsync === fsync)),
    evicts: all.some(({ evicts }) => evicts),
    replicas: Math.min(...all.map(({ replicas }) => replicas)),
    tellsFlushes: all.every(({ tellsFlushes }) => tellsFlushes),
  };
}

export interface DurabilityRequest {
  readonly primaries: readonly Redis[];
  readonly options: RedisQueueStoreOptions;
  readonly log: Log;
}

export async function inspectDurability(request: DurabilityRequest): Promise<RedisDurabilityReport> {
  const { log, options } = request;
  const { durability } = options;
  const settings = weakest(await Promise.all(request.primaries.map(readSettings)));
  if (!(Number.parseInt(settings.version, 10) >= 7)) {
    const text = `Redis ${settings.version} is too old: expected 7.0 or newer`;
    throw redisQueueError('redis-too-old', text, { value: settings.version, expected: '7.0 or newer' });
  }
  const confirmation = confirmationOf(options, settings);
  const reason = shortfall(settings, options, confirmation);
  if (reason) throw notDurable(durability, reason);
  const survives = describe(settings, confirmation);
  const report = { durability, settings, confirmedBy: confirmation?.replicas ?? 0, confirmation, survives };
  if (durability === 'none' || settings.evicts) log.warn({ ...settings }, `redis queue store: ${survives}`);
  else log.info({ ...settings }, `redis queue store: ${survives}`);
  return report;
}

const notDurable = (durability: RedisDurability, reason: string) =>
  redisQueueError('not-durable', `durability "${durability}": ${reason}`, { field: 'durability' });

function confirmationOf(
  options: RedisQueueStoreOptions,
  { replicas: connected, appendFsync, tellsFlushes }: ServerSettings,
): Confirmation | undefined {
  if (options.durability !== 'strict') return undefined;
  const by = options.confirm ?? (tellsFlushes && appendFsync === 'always' ? 'flush' : 'receipt');
  const replicas = options.replicas ?? connected;
  if (by === 'receipt' && replicas === 0) return undefined;
  return { by, replicas, timeoutMs: options.replicaTimeoutMs ?? 1_000, needsMark: tellsFlushes };
}

/** Why the server cannot keep what was asked for. */
function shortfall(
  settings: ServerSettings,
  { durability, confirm }: RedisQueueStoreOptions,
  confirmation: Confirmation | undefined,
): string | undefined {
  const { appendFsync } = settings;
  if (durability === 'none') return undefined;
  if (settings.evicts) return 'the server evicts keys when it is full; set maxmemory-policy noeviction';
  if (!settings.appendOnly) return 'the server keeps no append-only file; set appendonly yes';
  if (durability === 'everysec') return undefined;
  if (confirm === 'flush' && !settings.tellsFlushes)
    return 'the server has no WAITAOF (Redis 7.2, Valkey) to confirm a flush';
  if (confirmation && confirmation.replicas > settings.replicas)
    return `${confirmation.replicas} replicas must confirm, and ${settings.replicas} are connected`;
  // Valkey (to 9.1 at least) and some Redis 7 confirm the flush of what waits for the next second: redis/redis#13793.
  if (confirmation?.by === 'flush' && appendFsync !== 'always')
    return `the server flushes ${appendFsync ?? 'nobody knows when'}, and WAITAOF is not to be trusted then; set appendfsync always, or confirm "receipt"`;
  if (!confirmation && appendFsync !== 'always')
    return `the server flushes ${appendFsync ?? 'nobody knows when'} and has no replica; set appendfsync always`;
  return undefined;
}

function describe(
  { appendOnly, appendFsync, evicts }: ServerSettings,
  confirmation: Confirmation | undefined,
): string {
  if (evicts) return 'the server evicts keys when it is full: messages can vanish at any time';
  const { by, replicas = 0 } = confirmation ?? {};
  if (by === 'flush' && replicas > 0)
    return `an acknowledged change survives the loss of the primary and a power cut of all machines: its disk has it, and ${replicas} replica(s) say that theirs have`;
  if (replicas > 0) {
    const power = appendFsync === 'always' ? '' : ', unless its machine is back before one has taken over';
    return `an acknowledged change survives the loss of the primary: ${replicas} replica(s) have it${power}`;
  }
  if (!appendOnly) return 'an acknowledged change is lost when the server ends';
  if (appendFsync === 'always')
    return 'an acknowledged change survives a killed server and a power cut of its machine';
  return 'an acknowledged change survives a killed server; a power cut of its machine loses about the last second';
}

/**
 * Replicas without an append-only file never confirm a flush: said at start, not by every call. A replica that does not even
 * receive is another matter, and each call tells.
 */
export async function probeFlushes(
  primaries: readonly Redis[],
  options: RedisQueueStoreOptions,
  { by, replicas }: Confirmation,
): Promise<void> {
  if (by !== 'flush' || replicas === 0) return;
  // A replica that has just come begins with a new file, and speaks of flushes when that is written. The count has to be told before
  // the connection is given up for its silence.
  const timeoutMs = Math.min(5_000, Math.ceil((options.silenceMs ?? silenceDefaultMs) * 0.8));
  for (const primary of primaries) {
    if ((await primary.wait(replicas, timeoutMs)) < replicas) continue;
    const [, flushed] = (await primary.call('WAITAOF', 1, replicas, timeoutMs)) as number[];
    if (Number(flushed) >= replicas) continue;
    const text = `${flushed} of ${replicas} replicas flush what they receive within ${timeoutMs} ms; set appendonly yes on all, or confirm "receipt"`;
    throw notDurable('strict', text);
  }
}
