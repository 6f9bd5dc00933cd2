/** Reading: one message, lists, history. They change nothing and show the stored state. */
import type { Queryable } from '../../../database/index.js';
import { invalidInput } from '../../../errors.js';
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
type ListedRow = StoredRow & { readonly key: string; readonly place: string };
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

/** Rows that the functions of lists walk before they answer with what they have; a cursor leads on. */
const walkMax = 10_000;
/** Batches of events that the history of one message may walk. */
const historyBatchesMax = 10_000;

export function prepareRead(schema: string) {
  const known = `${schema}.queues q join ${schema}.ids i on i.queue_no = q.no`;
  // State by state: a plan that was made while few had ended would filter all of a queue's by a list of states.
  const ended = `lateral (
        select f.* from unnest('{3,4,5}'::smallint[]) e(state) cross join lateral (
          select * from ${schema}.finished f where f.queue_no = q.no and f.state = e.state and f.seq = i.seq limit 1
        ) f
      ) f`;
  const getText = `
    select ${liveColumns} from ${known} join ${schema}.messages m on m.seq = i.seq where q.name = $1::text and i.id = $2::text
    union all
    select ${finishedColumns} from ${known}
      cross join ${ended}
    where q.name = $1::text and i.id = $2::text`;

  const listTexts = {
    pending: `select * from ${schema}.list_pending($1::text, $2::jsonb, $3::bigint, $4::bigint, $5::integer)`,
    due: `select * from ${schema}.list_due($1::text, $6::smallint, $2::jsonb, $3::bigint, $4::bigint, $5::integer)`,
    finished: `select * from ${schema}.list_finished($1::text, $2::smallint, $3::jsonb, $4::bigint, $5::integer)`,
    newest: `select * from ${schema}.list_finished_newest($1::text, $2::smallint, $3::jsonb, $4::bigint, $5::integer)`,
  };

  function listCall({
    queue,
    state,
    where,
    after,
    limit,
    newestFirst = false,
  }: Request<'list'>): [string, unknown[]] {
    const [code, pairs] = [codeOf(state), JSON.stringify(where)];
    const [key, seq] = parseCursor(after) ?? [smallest, newestFirst ? largest : '0'];
    if (state === 'pending') return [listTexts.pending, [queue, pairs, key, seq, limit]];
    if (code < 3) return [listTexts.due, [queue, pairs, key, seq, limit, code]];
    return [newestFirst ? listTexts.newest : listTexts.finished, [queue, code, pairs, seq, limit]];
  }

  const historyText = `
    with message as (
      select q.no, i.seq, i.id, coalesce(m.metadata, f.metadata) as metadata
      from ${known}
        left join ${schema}.messages m on m.seq = i.seq
        left join ${ended} on true
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

    async list(on: Queryable, request: Request<'list'>) {
      const { queue, state, where, limit } = request;
      const { rows } = await on.query<ListedRow>(...listCall(request));
      const messages: Message[] = [];
      for (const row of rows.slice(0, limit))
        if (row.state === codeOf(state) && matches(row, where)) messages.push(toMessage(queue, row));
      const last = rows.at(Math.min(limit, rows.length) - 1);
      const hasMore = rows.length > limit || Number(last?.place) === walkMax;
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
const largest = '9223372036854775807';

function parseCursor(after: string | undefined): readonly [key: string, seq: string] | undefined {
  if (after === undefined) return undefined;
  const [, key = '', seq = ''] = /^(-?\d{1,19})\.(\d{1,19})$/.exec(after) ?? [];
  if (seq === '' || !isBigint(key) || !isBigint(seq))
    throw invalidInput('after', after, 'the cursor of a page');
  return [key, seq];
}

const isBigint = (digits: string): boolean => BigInt.asIntN(64, BigInt(digits)) === BigInt(digits);

function matches(row: StoredRow, where: Readonly<Record<string, string>>): boolean {
  const metadata = metadataOf(row.metadata);
  return Object.entries(where).every(
    ([key, value]) => Object.hasOwn(metadata, key) && metadata[key] === value,
  );
}
