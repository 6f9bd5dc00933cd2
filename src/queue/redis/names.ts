/**
 * The names of all queues: a set that lies beside them, in a Cluster on another node than most. Guarantees: a name is confirmed as any
 * other change is before this process enqueues the first message of that queue; and a name that the set has lost, such as by a
 * failover, comes back as long as any process runs that has known it.
 */
import type { Context } from './call.js';
import type { RedisConnection } from './connection.js';
import type { Keys } from './keys.js';

const readEveryMs = 2_000;

type Access = () => Promise<{ readonly connection: RedisConnection; readonly context: Context }>;

export class QueueNames {
  readonly #keys: Keys;
  readonly #access: Access;
  /** Those that this process has put into the set, or read from it. */
  readonly #put = new Set<string>();
  readonly #read = new Set<string>();
  #readAtMs = Number.NEGATIVE_INFINITY;

  constructor(keys: Keys, access: Access) {
    this.#keys = keys;
    this.#access = access;
  }

  isPut(queue: string): boolean {
    return this.#put.has(queue);
  }

  /** Once a process is enough, unless the queue turned out to be gone from the server. */
  async put(queue: string, again = false): Promise<void> {
    if (this.#put.has(queue) && !again) return;
    const { context } = await this.#access();
    await context.caller.call('name_queue', [this.#keys.queues], [queue]);
    this.#put.add(queue);
  }

  async all(): Promise<string[]> {
    const { connection } = await this.#access();
    return (await connection.client.smembers(this.#keys.queues)).sort();
  }

  /** All queues, as they were at most 2 s ago: others look after those they have made since, and this saves a command a step. */
  async lately(): Promise<string[]> {
    if (performance.now() - this.#readAtMs > readEveryMs) {
      const names = new Set(await this.all());
      this.#readAtMs = performance.now();
      for (const queue of new Set([...this.#put, ...this.#read]))
        if (!names.has(queue)) await this.put(queue, true);
      for (const queue of names) this.#read.add(queue);
    }
    return [...new Set([...this.#read, ...this.#put])];
  }
}
