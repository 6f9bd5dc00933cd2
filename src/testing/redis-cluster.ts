/**
 * A throwaway Redis Cluster on the loopback interface: primaries with one replica each, all slots served when it is handed out.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { type RedisServer, type RedisServerOptions, startRedisServer } from './redis-server.js';
import { until } from './until.js';

export interface RedisCluster {
  /** Primaries first, then the replica of each, in the order of the start. */
  readonly servers: readonly RedisServer[];
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  /** The server that is the primary of the slot now. */
  primaryOf(slot: number): Promise<RedisServer>;
  /** Moves a slot with all its keys to another primary, as redis-cli does it. */
  moveSlot(slot: number, target: RedisServer): Promise<void>;
  stop(): Promise<void>;
}

const slots = 16_384;

export interface RedisClusterOptions extends RedisServerOptions {
  /** Default 3. */
  readonly primaries?: number;
  /** One of each primary, or none. Default true. */
  readonly replicas?: boolean;
  /** After so long without an answer a node counts as failed. Default 2,000 ms. */
  readonly nodeTimeoutMs?: number;
}

export async function startRedisCluster({
  primaries = 3,
  replicas = true,
  nodeTimeoutMs = 2_000,
  ...options
}: RedisClusterOptions = {}): Promise<RedisCluster> {
  const settings = {
    'cluster-enabled': 'yes',
    'cluster-node-timeout': String(nodeTimeoutMs),
    'cluster-config-file': 'nodes.conf',
    ...options.settings,
  };
  const count = primaries * (replicas ? 2 : 1);
  const servers = await Promise.all(
    Array.from({ length: count }, () => startRedisServer({ ...options, settings })),
  );
  const cluster = new Cluster(servers);
  try {
    await cluster.join(primaries);
    return cluster;
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

class Cluster implements RedisCluster {
  readonly servers: readonly RedisServer[];
  readonly #clients: readonly Redis[];

  constructor(servers: readonly RedisServer[]) {
    this.servers = servers;
    this.#clients = servers.map((server) => {
      const client = server.connect();
      client.on('error', () => {});
      return client;
    });
  }

  get nodes(): { host: string; port: number }[] {
    return this.servers.map(({ port }) => ({ host: '127.0.0.1', port }));
  }

  async join(primaries: number): Promise<void> {
    const [first, ...others] = this.#clients as [Redis, ...Redis[]];
    for (const [index] of others.entries())
      await first.call('CLUSTER', 'MEET', '127.0.0.1', String(this.servers[index + 1]!.port));
    for (let index = 0; index < primaries; index += 1) {
      const from = Math.floor((slots * index) / primaries);
      const to = Math.floor((slots * (index + 1)) / primaries) - 1;
      await this.#clients[index]!.call('CLUSTER', 'ADDSLOTSRANGE', String(from), String(to));
    }
    await until(() => this.#allSay((info) => info.includes(`cluster_known_nodes:${this.servers.length}`)), {
      what: 'all nodes of the Cluster know all',
      everyMs: 50,
    });
    for (const [index, client] of this.#clients.slice(primaries).entries()) {
      const primary = (await this.#clients[index]!.call('CLUSTER', 'MYID')) as string;
      await client.call('CLUSTER', 'REPLICATE', primary);
    }
    await until(() => this.#allSay((info) => info.includes('cluster_state:ok')), {
      what: 'cluster_state:ok',
      everyMs: 50,
    });
    const nodesPerSlot = this.servers.length / primaries;
    const isKnown = async (client: Redis) => {
      const ranges = (await client.call('CLUSTER', 'SLOTS')) as unknown[][];
      return ranges.length === primaries && ranges.every((range) => range.length === 2 + nodesPerSlot);
    };
    for (const client of this.#clients)
      await until(() => isKnown(client), { what: 'every node knows who serves what', everyMs: 50 });
    const isLinked = async (client: Redis) =>
      (await client.info('replication')).includes('master_link_status:up');
    for (const client of this.#clients.slice(primaries))
      await until(() => isLinked(client), { what: 'replicas in step', everyMs: 50 });
  }

  async primaryOf(slot: number): Promise<RedisServer> {
    for (const [index, server] of this.servers.entries()) {
      if (server.pid === undefined) continue;
      const ranges = (await this.#clients[index]!.call('CLUSTER', 'SLOTS')) as [
        number,
        number,
        [string, number],
      ][];
      const port = ranges.find(([from, to]) => from <= slot && slot <= to)?.[2][1];
      const primary = this.servers.find((candidate) => candidate.port === port);
      if (primary) return primary;
    }
    throw new Error(`nobody serves slot ${slot}`);
  }

  async moveSlot(slot: number, target: RedisServer): Promise<void> {
    const source = await this.primaryOf(slot);
    const [from, to] = [this.#clientOf(source), this.#clientOf(target)];
    const [fromId, toId] = [await from.call('CLUSTER', 'MYID'), await to.call('CLUSTER', 'MYID')] as [
      string,
      string,
    ];
    await to.call('CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', fromId);
    await from.call('CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', toId);
    for (;;) {
      const keys = (await from.call('CLUSTER', 'GETKEYSINSLOT', String(slot), '1')) as string[];
      if (keys.length === 0) break;
      // One key at a time: between two of them calls arrive.
      await from.call('MIGRATE', '127.0.0.1', String(target.port), '', '0', '5000', 'KEYS', ...keys);
      await delay(5);
    }
    await to.call('CLUSTER', 'SETSLOT', String(slot), 'NODE', toId);
    await from.call('CLUSTER', 'SETSLOT', String(slot), 'NODE', toId);
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.disconnect();
    await Promise.all(this.servers.map((server) => server.stop()));
  }

  #clientOf(server: RedisServer): Redis {
    return this.#clients[this.servers.indexOf(server)]!;
  }

  async #allSay(says: (info: string) => boolean): Promise<boolean> {
    const infos = await Promise.all(
      this.#clients.map((client) => client.call('CLUSTER', 'INFO') as Promise<string>),
    );
    return infos.every(says);
  }
}
