/**
 * The connection to Redis. Guarantees: the driver is loaded when it is first needed, and its absence is answered with the
 * command that installs it; a command that gets no answer fails within a bound; a client of the caller's is never closed.
 */
import type { Cluster, ClusterNode, Redis, RedisOptions } from 'ioredis';
import { groundError } from '../../errors.js';
import type { Log } from '../../log.js';
import { type RedisQueueStoreOptions, silenceDefaultMs } from './options.js';
import { redisQueueError } from './errors.js';
import { connectionsMax, watchSilence } from './silence.js';

export type RedisClient = Redis | Cluster;

export interface RedisConnection {
  readonly client: RedisClient;
  readonly isCluster: boolean;
  /** Another connection, for subscriptions. */
  listener(): Redis;
  /** Resolves when the nodes are known. */
  ready(): Promise<void>;
  /** All nodes that take writes; the one server when there is no Cluster. */
  primaries(): Redis[];
  /** Asks a Cluster who serves what now. */
  refresh(): Promise<void>;
  close(): void;
}

type Driver = Pick<typeof import('ioredis'), 'Redis' | 'Cluster'>;

async function loadDriver(): Promise<Driver> {
  try {
    return await import('ioredis');
  } catch (cause) {
    throw groundError('driver-missing', 'the redis store needs the driver: npm install ioredis', { cause });
  }
}

const reconnectMs = (times: number): number =>
  Math.min(1_000, 50 * 2 ** Math.min(times, 5)) * (0.5 + Math.random() / 2);

/** A primary that has become a replica: connect anew, the address may lead to another server by now. */
const reconnectOnError = (error: Error): boolean => error.message.startsWith('READONLY');

export async function openConnection(options: RedisQueueStoreOptions, log: Log): Promise<RedisConnection> {
  const driver = await loadDriver();
  const silenceMs = options.silenceMs ?? silenceDefaultMs;
  const redisOptions = {
    maxRetriesPerRequest: 2,
    connectTimeout: silenceMs,
    retryStrategy: reconnectMs,
    reconnectOnError,
    keyPrefix: '',
  };
  const isOwn = options.client === undefined;
  const client: RedisClient =
    options.client ??
    (options.url === undefined
      ? new driver.Cluster([...options.cluster], {
          redisOptions: { ...redisOptions, ...accessOf(options.cluster) },
          clusterRetryStrategy: (times: number) => {
            if (times % connectionsMax === 0) giveUpWaiting(client as Cluster);
            return reconnectMs(times);
          },
          slotsRefreshTimeout: Math.min(3_000, silenceMs),
          slotsRefreshInterval: 5_000,
        })
      : new driver.Redis(options.url, redisOptions));
  // Without a listener an error event would end the process; every command tells its own failure.
  client.on('error', (error: Error) => log.debug({ error: error.message }, 'the connection to Redis failed'));
  const isCluster = client instanceof driver.Cluster || 'nodes' in client;
  const primaries = (): Redis[] => (isCluster ? (client as Cluster).nodes('master') : [client as Redis]);
  const all = (): Redis[] => (isCluster ? (client as Cluster).nodes() : [client as Redis]);
  const endWatch = isOwn ? watchSilence(all, silenceMs) : undefined;
  return {
    client,
    isCluster,
    listener: () => listenerOf(primaries(), silenceMs, log),
    ready: async () => {
      // Until then every seed of a Cluster counts as a primary.
      if (isCluster && client.status !== 'ready') await client.ping();
    },
    primaries,
    refresh: async () => {
      if (isCluster)
        await new Promise<void>((resolve) => (client as Cluster).refreshSlotsCache(() => resolve()));
    },
    close: () => {
      endWatch?.();
      if (isOwn) client.disconnect();
    },
  };
}

/** What waits for a Cluster of which no node answers: the driver would keep it until one does. It does this itself for a single server. */
function giveUpWaiting(cluster: Cluster): void {
  const driver = cluster as unknown as { readonly flushQueue: (error: Error) => void };
  driver.flushQueue(redisQueueError('redis-unavailable', 'no node of the Redis Cluster answers'));
}

/** The nodes that a Cluster tells of are reached as the first one is that the caller names by a URL. */
function accessOf(nodes: readonly ClusterNode[]): Pick<RedisOptions, 'username' | 'password' | 'tls'> {
  const named = nodes.find((node) => typeof node === 'string');
  if (named === undefined || !URL.canParse(named)) return {};
  const { protocol, username, password } = new URL(named);
  return {
    ...(username !== '' && { username: decodeURIComponent(username) }),
    ...(password !== '' && { password: decodeURIComponent(password) }),
    ...(protocol === 'rediss:' && { tls: {} }),
  };
}

/** Its own connection to one node: a Cluster passes publications on to all. */
function listenerOf(primaries: readonly Redis[], socketTimeout: number, log: Log): Redis {
  const node = primaries[Math.floor(Math.random() * primaries.length)];
  if (node === undefined) throw groundError('stopped', 'no node of the Cluster is known yet');
  const listener = node.duplicate({
    socketTimeout,
    maxRetriesPerRequest: null,
    retryStrategy: reconnectMs,
    lazyConnect: true,
  });
  listener.on('error', (error: Error) => log.debug({ error: error.message }, 'the listener of hints failed'));
  return listener;
}
