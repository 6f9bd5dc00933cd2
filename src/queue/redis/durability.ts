/**
 * What an acknowledged change survives: read from the server's settings, said in words, and refused where it is less than what
 * was asked for. docs/reference/queue-redis.md has the table.
 */
import type { Redis } from 'ioredis';
import type { Log } from '../../log.js';
import { redisQueueError } from './errors.js';
import type { RedisDurability } from './options.js';

export interface ServerSettings {
  readonly version: string;
  readonly appendOnly: boolean;
  /** `always`, `everysec` or `no`; undefined where the server does not tell. */
  readonly appendFsync: string | undefined;
  readonly evicts: boolean;
  readonly replicas: number;
}

export interface RedisDurabilityReport {
  readonly durability: RedisDurability;
  readonly settings: ServerSettings;
  /** Replicas that confirm each change; 0 for none. */
  readonly confirmedBy: number;
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
  };
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
  };
}

export async function inspectDurability(request: {
  readonly primaries: readonly Redis[];
  readonly durability: RedisDurability;
  /** Asked for; default those that are connected. */
  readonly replicas: number | undefined;
  readonly log: Log;
}): Promise<RedisDurabilityReport> {
  const { durability, log } = request;
  const settings = weakest(await Promise.all(request.primaries.map(readSettings)));
  if (!(Number.parseInt(settings.version, 10) >= 7)) {
    const text = `Redis ${settings.version} is too old: expected 7.0 or newer`;
    throw redisQueueError('redis-too-old', text, { value: settings.version, expected: '7.0 or newer' });
  }
  const confirmedBy = durability === 'strict' ? (request.replicas ?? settings.replicas) : 0;
  const reason = shortfall(settings, durability, confirmedBy);
  if (reason)
    throw redisQueueError('not-durable', `durability "${durability}": ${reason}`, { field: 'durability' });
  const survives = describe(settings, confirmedBy);
  const report = { durability, settings, confirmedBy, survives };
  if (durability === 'none' || settings.evicts) log.warn({ ...settings }, `redis queue store: ${survives}`);
  else log.info({ ...settings }, `redis queue store: ${survives}`);
  return report;
}

/** Why the server cannot keep what was asked for. */
function shortfall(
  settings: ServerSettings,
  durability: RedisDurability,
  confirmedBy: number,
): string | undefined {
  if (durability === 'none') return undefined;
  if (settings.evicts) return 'the server evicts keys when it is full; set maxmemory-policy noeviction';
  if (!settings.appendOnly) return 'the server keeps no append-only file; set appendonly yes';
  if (durability === 'everysec') return undefined;
  if (confirmedBy > settings.replicas)
    return `${confirmedBy} replicas must confirm, and ${settings.replicas} are connected`;
  if (confirmedBy === 0 && settings.appendFsync !== 'always')
    return `the server flushes ${settings.appendFsync ?? 'nobody knows when'} and has no replica; set appendfsync always`;
  return undefined;
}

function describe({ appendOnly, appendFsync, evicts }: ServerSettings, confirmedBy: number): string {
  if (evicts) return 'the server evicts keys when it is full: messages can vanish at any time';
  if (confirmedBy > 0) {
    const power = appendFsync === 'always' ? '' : ', unless its machine is back before one has taken over';
    return `an acknowledged change survives the loss of the primary: ${confirmedBy} replica(s) have it${power}`;
  }
  if (!appendOnly) return 'an acknowledged change is lost when the server ends';
  if (appendFsync === 'always')
    return 'an acknowledged change survives a killed server and a power cut of its machine';
  return 'an acknowledged change survives a killed server; a power cut of its machine loses about the last second';
}
