/**
 * The connection to Redis, and who it is that answers. Guarantees: the driver is loaded when it is first needed; a command
 * that gets no answer fails within a bound; a reply is told together with the server that gave it, and a reply that came over
 * a connection made anew meanwhile is told as nobody's; a client of the caller's is never closed.
 */
import type { Cluster, Redis } from 'ioredis';
import { groundError } from '../../errors.js';
import type { Log } from '../../log.js';
import { feedError } from '../errors.js';
import type { RedisTimelinesOptions } from './options.js';

export type RedisClient = Redis | Cluster;

type Driver = Pick<typeof import('ioredis'), 'Redis' | 'Cluster'>;

async function loadDriver(): Promise<Driver> {
  try {
    return await import('ioredis');
  } catch (cause) {
    throw groundError('driver-missing', 'timelines in Redis need the driver: npm install ioredis', { cause });
  }
}

const reconnectMs = (times: number): number =>
  Math.min(1_000, 50 * 2 ** Math.min(times, 5)) * (0.5 + Math.random() / 2);

/** A primary that has become a replica: connect anew, the address may lead to another server by now. */
const reconnectOnError = (error: Error): boolean => error.message.startsWith('READONLY');

/** A server gets another replication id without closing a connection, when its role changes: it is asked again this often. */
const identityKeptMs = 2_000;

interface Identity {
  readonly id: string;
  askedAtMs: number;
}

export interface Answered<Reply> {
  readonly reply: Reply;
  /** Undefined: the connection broke meanwhile, and who answered is not known. */
  readonly server: string | undefined;
}

export class RedisConnection {
  readonly isCluster: boolean;
  readonly #client: RedisClient;
  readonly #isOwn: boolean;
  readonly #log: Log;
  /** Who is at the other end of each connection; forgotten when it closes. */
  readonly #identities = new WeakMap<Redis, Identity>();
  readonly #watched = new WeakSet<Redis>();
  readonly #known = new Set<string>();
  #wasReady = false;

  static async open(options: RedisTimelinesOptions, log: Log): Promise<RedisConnection> {
    const driver = await loadDriver();
    const timeoutMs = options.timeoutMs ?? 1_000;
    const redisOptions = {
      maxRetriesPerRequest: 0,
      commandTimeout: timeoutMs,
      connectTimeout: timeoutMs,
      // Whether a command was done before its connection broke is not known; who asked decides.
      autoResendUnfulfilledCommands: false,
      retryStrategy: reconnectMs,
      reconnectOnError,
    };
    const client: RedisClient =
      options.client ??
      (options.url === undefined
        ? new driver.Cluster([...options.cluster], {
            redisOptions,
            clusterRetryStrategy: reconnectMs,
            slotsRefreshTimeout: 3_000,
            slotsRefreshInterval: 5_000,
          })
        : new driver.Redis(options.url, redisOptions));
    const isCluster = client instanceof driver.Cluster || 'nodes' in client;
    return new RedisConnection(client, isCluster, options.client === undefined, log);
  }

  private constructor(client: RedisClient, isCluster: boolean, isOwn: boolean, log: Log) {
    this.#client = client;
    this.isCluster = isCluster;
    this.#isOwn = isOwn;
    this.#log = log;
    // Without a listener an error event would end the process; every command tells its own failure.
    client.on('error', (error: Error) =>
      log.debug({ error: error.message }, 'the connection to the timelines failed'),
    );
  }

  close(): void {
    if (this.#isOwn) this.#client.disconnect();
  }

  /** Waits for the first connection, as long as a command may take; later ones are not waited for. */
  async ready(): Promise<void> {
    if (this.#client.status === 'ready') {
      this.#wasReady = true;
      return;
    }
    if (this.#wasReady) throw unavailable('no connection');
    await this.#client.ping();
    this.#wasReady = true;
  }

  /** A node of a Cluster that nobody has asked for yet counts as connected. */
  isConnected(): boolean {
    if (this.#client.status !== 'ready') return false;
    return this.primaries().every(({ status }) => !['reconnecting', 'close', 'end'].includes(status));
  }

  primaries(): Redis[] {
    return this.isCluster ? (this.#client as Cluster).nodes('master') : [this.#client as Redis];
  }

  /** The primary of a slot. */
  nodeOf(slot: number): Redis {
    if (!this.isCluster) return this.#client as Redis;
    const cluster = this.#client as Cluster;
    const address = cluster.slots[slot]?.[0];
    const node = cluster.nodes('master').find((candidate) => addressOf(candidate) === address);
    if (node === undefined) throw unavailable(`nobody is known to serve slot ${slot}`);
    return node;
  }

  /** Asks a Cluster who serves what now. */
  async refresh(): Promise<void> {
    if (!this.isCluster) return;
    await new Promise<void>((resolve) => (this.#client as Cluster).refreshSlotsCache(() => resolve()));
  }

  /** Sends to one node and tells who answered. A node that is not connected is not waited for. */
  async ask<Reply>(node: Redis, send: (node: Redis) => Promise<Reply>): Promise<Answered<Reply>> {
    if (node.status !== 'ready' && this.#watched.has(node)) throw unavailable(`${addressOf(node)} is away`);
    const identity = this.#identities.get(node) ?? (await this.identify(node));
    if (performance.now() - identity.askedAtMs > identityKeptMs) {
      identity.askedAtMs = performance.now();
      this.identify(node).catch(() => {});
    }
    const reply = await send(node);
    const isSame = this.#identities.get(node) === identity;
    return { reply, server: isSame ? identity.id : undefined };
  }

  /** Asks a node who it is. */
  async identify(node: Redis): Promise<Identity> {
    if (!this.#watched.has(node)) {
      this.#watched.add(node);
      node.on('close', () => this.#identities.delete(node));
    }
    let broken = false;
    const onClose = () => {
      broken = true;
    };
    node.once('close', onClose);
    const info = await node.info('server', 'replication').finally(() => node.off('close', onClose));
    const id = `${fieldOf(info, 'run_id')}:${fieldOf(info, 'master_replid')}`;
    if (broken) throw unavailable(`the connection to ${addressOf(node)} broke`);
    const held = this.#identities.get(node);
    if (held?.id === id) {
      held.askedAtMs = performance.now();
      return held;
    }
    const identity = { id, askedAtMs: performance.now() };
    this.#identities.set(node, identity);
    this.#known.add(id);
    this.#log.debug({ address: addressOf(node), server: id }, 'a server of timelines');
    return identity;
  }

  hasKnown(server: string): boolean {
    return this.#known.has(server);
  }
}

export function addressOf(node: Redis): string {
  return `${node.options.host}:${node.options.port}`;
}

export function unavailable(what: string, cause?: unknown): Error {
  return feedError('timelines-unavailable', `timelines in Redis: ${what}`, { cause });
}

function fieldOf(info: string, name: string): string {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? '';
}
