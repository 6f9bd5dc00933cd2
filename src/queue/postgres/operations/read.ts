/** Reading: one message, lists, history. They change nothing and show the stored state. */
import type { Queryable } from '../../../database/index.js';
import type { Message, MessageEvent } from '../../message.js';
import type { QueueStore } from '../../store.js';
import {
  codeOf,
  finishedColumns,
  liveColumns,
  metadataOf,
  stateOf,
  type StoredRow,
  toMessage,
} from '../rows.js';

type Request<Operation extends 'get' | 'list' | 'history'> = Parameters<QueueStore[Operation]>[0];
type ListedRow = StoredRow & { readonly key: string };
type EventRow = {
  id: string;
  seq: string;
  metadata: string | null;
  from_state: number | null;
  to_state: number;
  at: string;
  version: string;
  attempt: number;
};

/** Rows that one list statement may walk before it answers with what it has and a cursor. */
const walkMax = 10_000;
/** Batches of events that the history of one message may walk. */
const historyBatchesMax = 10_000;

export function prepareRead(schema: string) {
  const known = `${schema}.queues q join ${schema}.ids i on i.queue_no = q.no`;
  const getText = `
    select ${liveColumns} from ${known} join ${schema}.messages m on m.seq = i.seq where q.name = $1::text and i.id = $2::text
    union all
    select ${finishedColumns} from ${known}
      join ${schema}.finished f on f.queue_no = q.no and f.state in (3, 4, 5) and f.seq = i.seq
    where q.name = $1::text and i.id = $2::text`;

  const listOf = (source: string, columns: string, key: string, filter: string, metadata: string) => `
    with walk as (
      select ${columns}, ${key} as key, ${metadata} as pairs from ${schema}.queues q join ${source} on ${filter}
      where q.name = $1::text and (${key}, ${source.at(-1)!}.seq) > ($4::bigint, $5::bigint)
      order by ${key}, ${source.at(-1)!}.seq limit ${walkMax}
    )
    select w.*, (select count(*) from walk) as walked from walk w
    where coalesce(w.pairs, '{}') @> $3::jsonb or w.seq = (select l.seq from walk l order by l.key desc, l.seq desc limit 1)
    order by w.key, w.seq limit $6::integer + 1`;
  const messages = `${schema}.messages m`;
  const listTexts = {
    pending: listOf(
      messages,
      liveColumns,
      'm.priority',
      'm.queue_no = q.no and m.state = 1 and $2::smallint = 1',
      'm.metadata',
    ),
    due: listOf(
      messages,
      liveColumns,
      'm.due_at',
      'm.queue_no = q.no and m.due_at is not null and m.state = $2::smallint',
      'm.metadata',
    ),
    finished: listOf(
      `${schema}.finished f`,
      finishedColumns,
      '0::bigint',
      'f.queue_no = q.no and f.state = $2::smallint',
      'f.metadata',
    ),
  };

  const historyText = `
    with message as (
      select q.no, i.seq, i.id, coalesce(m.metadata, f.metadata) as metadata
      from ${known}
        left join ${schema}.messages m on m.seq = i.seq
        left join ${schema}.finished f on f.queue_no = q.no and f.state in (3, 4, 5) and f.seq = i.seq
      where q.name = $1::text and i.id = $2::text
    ), batch as (
      select e.*, m.id, m.seq, m.metadata, case when e.seqs is null then 1 else array_position(e.seqs, m.seq) end as place
      from message m cross join lateral (
        select e.* from ${schema}.events e
        where e.queue_no = m.no and e.last_seq >= m.seq
        order by e.last_seq limit ${historyBatchesMax}
      ) e
      where e.first_seq <= m.seq
    )
    select b.id, b.seq, b.metadata::text as metadata, b.from_state, b.to_state, b.at, coalesce(b.versions[b.place], 1) as version,
      coalesce(b.attempts[b.place], 0) as attempt
    from batch b where b.place is not null order by version`;

  return {
    async get(on: Queryable, { queue, id }: Request<'get'>): Promise<Message | undefined> {
      const { rows } = await on.query<StoredRow>(getText, [queue, id]);
      return rows[0] && toMessage(queue, rows[0]);
    },

    async list(on: Queryable, { queue, state, where, after, limit }: Request<'list'>) {
      const code = codeOf(state);
      const text = state === 'pending' ? listTexts.pending : code < 3 ? listTexts.due : listTexts.finished;
      const cursor = parseCursor(after);
      const messages: Message[] = [];
      const { rows } = await on.query<ListedRow & { walked: string }>(text, [
        queue,
        code,
        JSON.stringify(where),
        ...cursor,
        limit,
      ]);
      const isWalkFull = Number(rows[0]?.walked ?? 0) >= walkMax;
      for (const row of rows.slice(0, limit)) if (matches(row, where)) messages.push(toMessage(queue, row));
      const last = rows.at(Math.min(limit, rows.length) - 1);
      const hasMore = rows.length > limit || isWalkFull;
      return { messages, next: hasMore && last ? `${last.key}.${last.seq}` : undefined };
    },

    async history(on: Queryable, { queue, id }: Request<'history'>): Promise<MessageEvent[]> {
      const { rows } = await on.query<EventRow>(historyText, [queue, id]);
      return rows.map((row) => ({
        queue,
        id: row.id,
        version: Number(row.version),
        from: row.from_state === null ? undefined : stateOf(row.from_state),
        to: stateOf(row.to_state),
        at: Number(row.at),
        attempt: row.attempt,
        metadata: metadataOf(row.metadata),
        incarnation: row.seq,
      }));
    },
  };
}

const smallest = '-9223372036854775808';

function parseCursor(after: string | undefined): [string, string] {
  const match = after === undefined ? undefined : /^(-?\d{1,19})\.(\d{1,19})$/.exec(after);
  return match ? [match[1]!, match[2]!] : [smallest, '0'];
}

function matches(row: StoredRow, where: Readonly<Record<string, string>>): boolean {
  const metadata = metadataOf(row.metadata);
  return Object.entries(where).every(
    ([key, value]) => Object.hasOwn(metadata, key) && metadata[key] === value,
  );
}
