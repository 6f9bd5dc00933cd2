/**
 * Timelines in Redis: the port of src/feed/timeline-lists.ts on a single server or a Cluster. A timeline's key carries the hash
 * tag of its bucket, so that a batch of readers is one call for each bucket, and calls to one node are one pipeline.
 */
import type { Redis } from 'ioredis';
import { silentLog } from '../../log.js';
import type { ListServer, ListWindow, Pushed, TimelineLists } from '../timeline-lists.js';
import { type Call, guarded, ScriptCaller } from './caller.js';
import { addressOf, RedisConnection, unavailable } from './connection.js';
import { JoinedPushes, type PushPart } from './joined-pushes.js';
import { checkOptions, type RedisTimelinesOptions } from './options.js';
import { sampledBytes } from './sampled-bytes.js';
import { slotOfTag } from './slots.js';

const scanCount = 500;
const bucketsPerPrimary = 64;

interface Opened {
  readonly connection: RedisConnection;
  readonly caller: ScriptCaller;
  readonly pushes: JoinedPushes;
}

interface Bucket {
  readonly slot: number;
  readonly prefix: string;
}

/**
 * For `createPostgresFeedStore({ database, timelines })`. Needs Redis 7.0 or newer, or Valkey; no persistence is asked for: what
 * Redis loses is read from the posts and written again.
 *
 * @example
 * const timelines = createRedisTimelines({ url: 'redis://localhost:6379' });
 * const store = createPostgresFeedStore({ database, timelines });
 */
export function createRedisTimelines(options: RedisTimelinesOptions): TimelineLists {
  checkOptions(options);
  return new RedisTimelines(options);
}

class RedisTimelines implements TimelineLists {
  readonly name = 'redis';
  readonly #options: RedisTimelinesOptions;
  readonly #prefix: string;
  #opening: Promise<Opened> | undefined;
  #opened: Opened | undefined;
  #buckets: readonly Bucket[] = [];

  constructor(options: RedisTimelinesOptions) {
    this.#options = options;
    this.#prefix = options.prefix ?? 'headgate-feed';
  }

  async start(): Promise<void> {
    await this.#open();
  }

  async stop(): Promise<void> {
    const opened = await this.#opening;
    this.#opening = undefined;
    this.#opened = undefined;
    opened?.connection.close();
  }

  async bucketsWanted(known: number | undefined): Promise<number> {
    const wanted = this.#options.buckets ?? known;
    if (wanted !== undefined) return wanted;
    const { connection } = await this.#open();
    if (!connection.isCluster) return 1;
    await guarded(() => connection.ready());
    return bucketsPerPrimary * connection.primaries().length;
  }

  useBuckets(count: number): void {
    this.#buckets = Array.from({ length: count }, (_, index) => ({
      slot: slotOfTag(String(index)),
      prefix: `${this.#prefix}:{${index}}:`,
    }));
  }

  async push({ post, readers, ...bounds }: Parameters<TimelineLists['push']>[0]): Promise<Pushed> {
    const { connection, pushes } = await this.#open();
    await guarded(() => connection.ready());
    const parts = this.#byBucket(readers).map(([bucket, held]) => ({ ...bucket, post, readers: held }));
    const byNode = new Map<Redis, PushPart[]>();
    for (const part of parts) {
      const node = connection.nodeOf(part.slot);
      const held = byNode.get(node);
      if (held) held.push(part);
      else byNode.set(node, [part]);
    }
    const pushed = await Promise.all([...byNode].map(([node, ofNode]) => pushes.push(node, ofNode, bounds)));
    const total = { written: 0, late: 0, calls: 0 };
    for (const { written, late, calls } of pushed) {
      total.written += written;
      total.late += late;
      total.calls += calls;
    }
    return { ...total, servers: [...new Set(pushed.flatMap(({ servers }) => [...servers]))] };
  }

  async begin({ reader, token, keptMs }: Parameters<TimelineLists['begin']>[0]): Promise<void> {
    await this.#callOne('begin', reader, [token, keptMs]);
  }

  async merge(input: Parameters<TimelineLists['merge']>[0]): ReturnType<TimelineLists['merge']> {
    const { reader, token, ids, floor, entriesMax, keptMs } = input;
    const { reply, server } = await this.#callOne('merge', reader, [
      token,
      floor,
      entriesMax,
      keptMs,
      ...ids,
    ]);
    if (reply === null) return undefined;
    const [added, version] = reply as [number, string];
    return { added, version, server: this.#knownServer(server) };
  }

  async read({ reader, position, older, count }: Parameters<TimelineLists['read']>[0]) {
    const { reply, server } = await this.#callOne('read', reader, [position, older ? '1' : '0', count]);
    if (reply === null || server === undefined) return undefined;
    const [token, version, floor, more, ids] = reply as [string, string, string, number, string[]];
    return { token, version, floor, ids, more: more === 1, server } satisfies ListWindow;
  }

  async remove({ reader, token, version, ids }: Parameters<TimelineLists['remove']>[0]): Promise<number> {
    if (ids.length === 0) return 0;
    return (await this.#callOne('remove', reader, [token, version, ...ids])).reply as number;
  }

  async drop(readers: readonly string[]): Promise<void> {
    await this.#forKeys(readers, (pipeline, key) => pipeline.unlink(key));
  }

  async renew({ reader, keptMs }: { reader: string; keptMs: number }): Promise<void> {
    await this.#forKeys([reader], (pipeline, key) => pipeline.pexpire(key, keptMs));
  }

  async count(readers: readonly string[]): Promise<number> {
    const lengths = await this.#forKeys(readers, (pipeline, key) => pipeline.llen(key));
    // The marker is no entry; a key of another type answers an error.
    return lengths.reduce<number>((sum, length) => sum + Math.max(0, Number(length ?? 0) - 1), 0);
  }

  isConnected(): boolean {
    return this.#opened?.connection.isConnected() ?? false;
  }

  async bytes(): Promise<number> {
    const { connection } = await this.#open();
    return guarded(async () => {
      await connection.ready();
      const ofNodes = await Promise.all(
        [...this.#servingNodes(connection).keys()].map((node) => sampledBytes(node, this.#prefix)),
      );
      return ofNodes.reduce((sum, bytes) => sum + bytes, 0);
    });
  }

  async scan(position: string): Promise<{ readers: string[]; position: string | undefined }> {
    const { connection } = await this.#open();
    return guarded(async () => {
      await connection.ready();
      const [nodeIndex = '0', cursor = '0'] = position.split(':');
      const nodes = connection
        .primaries()
        .toSorted((one, other) => (addressOf(one) < addressOf(other) ? -1 : 1));
      const node = nodes[Number(nodeIndex)];
      if (node === undefined) return { readers: [], position: undefined };
      const match = `${this.#prefix.replaceAll(/[[\]*?\\]/g, '\\$&')}:{*}:*`;
      const [next, keys] = await node.scan(cursor, 'MATCH', match, 'COUNT', scanCount);
      const readers: string[] = [];
      for (const key of keys) {
        const reader = /\}:(\d+)$/.exec(key)?.[1];
        if (reader === undefined) continue;
        // A key of another number of buckets is nobody's.
        if (this.#bucketOf(reader).prefix + reader === key) readers.push(reader);
        else await node.unlink(key);
      }
      const last = next === '0' && Number(nodeIndex) + 1 >= nodes.length;
      const at = next === '0' ? `${Number(nodeIndex) + 1}:0` : `${nodeIndex}:${next}`;
      return { readers, position: last ? undefined : at };
    });
  }

  async servers(): Promise<ListServer[]> {
    const { connection } = await this.#open();
    return guarded(async () => {
      await connection.ready();
      return Promise.all(
        [...this.#servingNodes(connection)].map(async ([node, { prefix }]) => ({
          id: (await connection.identify(node)).id,
          address: addressOf(node),
          beat: Number((await node.get(`${prefix}beat`)) ?? 0),
        })),
      );
    });
  }

  async beat(now: number): Promise<void> {
    const { connection } = await this.#open();
    await guarded(() =>
      Promise.all(
        [...this.#servingNodes(connection)].map(([node, { prefix }]) =>
          node.set(`${prefix}beat`, String(now)),
        ),
      ),
    );
  }

  /** Nodes that hold timelines, each with the first of its buckets. */
  #servingNodes(connection: RedisConnection): Map<Redis, Bucket> {
    const serving = new Map<Redis, Bucket>();
    for (const bucket of this.#buckets) {
      const node = connection.nodeOf(bucket.slot);
      if (!serving.has(node)) serving.set(node, bucket);
    }
    return serving;
  }

  async hasKnown(server: string): Promise<boolean> {
    return (await this.#open()).connection.hasKnown(server);
  }

  #open(): Promise<Opened> {
    this.#opening ??= (async () => {
      const connection = await RedisConnection.open(this.#options, this.#options.log ?? silentLog);
      const caller = new ScriptCaller(connection);
      this.#opened = { connection, caller, pushes: new JoinedPushes(caller) };
      return this.#opened;
    })();
    return this.#opening;
  }

  #bucketOf(reader: string): Bucket {
    const count = this.#buckets.length;
    const bucket = this.#buckets[count > 1 ? Number(BigInt(reader) % BigInt(count)) : 0];
    if (bucket === undefined) throw unavailable('not started');
    return bucket;
  }

  #byBucket(readers: readonly string[]): (readonly [Bucket, readonly string[]])[] {
    const [first] = this.#buckets;
    if (first && this.#buckets.length === 1) return readers.length > 0 ? [[first, readers]] : [];
    const byBucket = new Map<Bucket, string[]>();
    for (const reader of readers) {
      const bucket = this.#bucketOf(reader);
      const held = byBucket.get(bucket);
      if (held) held.push(reader);
      else byBucket.set(bucket, [reader]);
    }
    return [...byBucket];
  }

  async #callOne(script: Call['script'], reader: string, args: Call['args']) {
    const { slot, prefix } = this.#bucketOf(reader);
    const { caller } = await this.#open();
    return caller.call({ script, slot, keys: [prefix + reader], args });
  }

  /** One plain command for each reader's key, those of a node in one pipeline. */
  async #forKeys(
    readers: readonly string[],
    add: (pipeline: ReturnType<Redis['pipeline']>, key: string) => unknown,
  ): Promise<unknown[]> {
    const { connection } = await this.#open();
    return guarded(async () => {
      await connection.ready();
      const byNode = new Map<Redis, string[]>();
      for (const reader of readers) {
        const { slot, prefix } = this.#bucketOf(reader);
        const node = connection.nodeOf(slot);
        const keys = byNode.get(node);
        if (keys) keys.push(prefix + reader);
        else byNode.set(node, [prefix + reader]);
      }
      const replies = await Promise.all(
        [...byNode].map(async ([node, keys]) => {
          const pipeline = node.pipeline();
          for (const key of keys) add(pipeline, key);
          return ((await pipeline.exec()) ?? []).map(([error, reply]) => (error ? undefined : reply));
        }),
      );
      return replies.flat();
    });
  }

  /** Who answered must be known: entries on an unknown server could not be found missing later. */
  #knownServer(server: string | undefined): string {
    if (server === undefined) throw unavailable('the connection broke during a call');
    return server;
  }
}
