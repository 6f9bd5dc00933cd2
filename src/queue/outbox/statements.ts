/** The statements of the relay, built once for a schema. Times are unix milliseconds of the database's clock. */
import type { Database } from '../../database/index.js';
import type { MessageToStore } from '../store.js';

export interface OutboxRow {
  readonly number: string;
  readonly message: MessageToStore;
  readonly createdAt: number;
  /** Milliseconds since then. */
  readonly ageMs: number;
}

export interface OutboxLag {
  readonly queue: string;
  readonly waiting: number;
  readonly oldestMs: number;
}

const clock = 'floor(extract(epoch from statement_timestamp()) * 1000)::bigint';

export class OutboxStatements {
  readonly #database: Database;
  readonly #texts: Readonly<
    Record<'queues' | 'claim' | 'yield' | 'read' | 'remove' | 'refuse' | 'lag', string>
  >;

  constructor(database: Database, schema: string) {
    this.#database = database;
    const [message, refused, relay] = ['message', 'refused', 'relay'].map(
      (name) => `${schema}.outbox_${name}`,
    );
    this.#texts = {
      // One look into the index for each queue, however many rows it has.
      queues: `
        with recursive waiting as (
          (select queue from ${message} order by queue limit 1)
          union all
          select (select next.queue from ${message} next where next.queue > waiting.queue order by next.queue limit 1)
          from waiting where waiting.queue is not null
        )
        select queue from waiting where queue is not null`,
      claim: `
        insert into ${relay} as held (queue, holder, held_until) values ($1, $2, ${clock} + $3::bigint)
        on conflict (queue) do update set holder = excluded.holder, held_until = excluded.held_until
        where held.holder = excluded.holder or held.held_until <= ${clock}
        returning queue`,
      yield: `delete from ${relay} where holder = $1`,
      read: `
        select number, message, created_at, ${clock} - created_at as age_ms
        from ${message} where queue = $1 order by number limit $2`,
      remove: `delete from ${message} where number = any($1::bigint[])`,
      refuse: `
        with gone as (delete from ${message} where number = $1 returning number, queue, message, created_at)
        insert into ${refused} (number, queue, message, created_at, refused_at, error)
        select number, queue, message, created_at, ${clock}, $2 from gone
        on conflict (number) do nothing`,
      lag: `
        select queue, count(*) as waiting, max(${clock} - created_at) as oldest_ms
        from ${message} group by queue order by queue`,
    };
  }

  async queues(): Promise<string[]> {
    const { rows } = await this.#database.query<{ queue: string }>(this.#texts.queues);
    return rows.map(({ queue }) => queue);
  }

  /** True while this holder alone may relay the queue. */
  async claim(queue: string, holder: string, forMs: number): Promise<boolean> {
    const { rows } = await this.#database.query(this.#texts.claim, [queue, holder, forMs]);
    return rows.length > 0;
  }

  async yieldAll(holder: string): Promise<void> {
    await this.#database.query(this.#texts.yield, [holder]);
  }

  async read(queue: string, limit: number): Promise<OutboxRow[]> {
    const { rows } = await this.#database.query<{
      number: string;
      message: string;
      created_at: string;
      age_ms: string;
    }>(this.#texts.read, [queue, limit]);
    return rows.map((row) => ({
      number: row.number,
      message: JSON.parse(row.message) as MessageToStore,
      createdAt: Number(row.created_at),
      ageMs: Number(row.age_ms),
    }));
  }

  async remove(numbers: readonly string[]): Promise<void> {
    await this.#database.query(this.#texts.remove, [numbers]);
  }

  async refuse(number: string, error: string): Promise<void> {
    await this.#database.query(this.#texts.refuse, [number, error]);
  }

  async lag(): Promise<OutboxLag[]> {
    const { rows } = await this.#database.query<{ queue: string; waiting: string; oldest_ms: string }>(
      this.#texts.lag,
    );
    return rows.map((row) => ({
      queue: row.queue,
      waiting: Number(row.waiting),
      oldestMs: Number(row.oldest_ms),
    }));
  }
}
