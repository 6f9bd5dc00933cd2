/**
 * Fills a queue's tables with millions of rows in minutes, as the store itself would have left them: live messages, ended
 * ones in their partitions, ids, pairs, settled depth, values and events, analyzed as autovacuum does it.
 */
import type { Database } from '../../../src/database/index.js';

export interface LargeTables {
  readonly terminal: number;
  readonly future: number;
  readonly waiting: number;
  /** Messages of one running value of the exclusive queue `x`, in front of those of idle values. */
  readonly blocked: number;
  readonly idleValues: number;
}

/** Ids of simple queue `q` are `m-` and the number of the message: ended ones first, then future, then waiting ones. */
export const largeId = (seq: number): string => `m-${String(seq).padStart(9, '0')}`;

const day = 86_400_000;
const idOf = (seq: string): string => `'m-' || lpad((${seq})::text, 9, '0')`;

export async function fillLargeTables(
  { database, schema }: { database: Database; schema: string },
  size: LargeTables,
): Promise<void> {
  const now = Date.now();
  await database.script(`
    insert into ${schema}.queues (name) values ('q'), ('x');
    update ${schema}.queues set exclusive_key = 'user' where name = 'x';
    insert into ${schema}.value_turns (queue_no) select no from ${schema}.queues where name = 'x'`);
  // Partitions are made ahead, each day those of the next.
  for (const before of [2, 1, 0]) await database.query(`select ${schema}.maintain($1)`, [now - before * day]);
  const { rows } = await database.query<{ q: string; x: string }>(
    `select (select no from ${schema}.queues where name = 'q')::text as q, (select no from ${schema}.queues where name = 'x')::text as x`,
  );
  const texts = textsOf({ schema, size, now, q: Number(rows[0]!.q), x: Number(rows[0]!.x) });
  const tablesOfEach = [
    ['messages', 'pairs', 'exclusive_values', 'depth'],
    ['ids', 'finished', 'events'],
  ] as const;
  // Two sessions, one for each core.
  await Promise.all(
    tablesOfEach.map(async (tables) => {
      for (const table of tables) {
        const { drop, create } = await indexesOf(database, schema, table);
        await database.script(
          `set maintenance_work_mem = '512MB'; set work_mem = '256MB'; ${drop}; ${texts[table].join(';')}; ${create};
           reset maintenance_work_mem; reset work_mem`,
        );
      }
    }),
  );
  const { terminal, future, waiting, blocked, idleValues } = size;
  await database.query(`select setval('${schema}.seq', $1)`, [
    terminal + future + waiting + blocked + idleValues + 1,
  ]);
  await analyzeAsAutovacuum(database, schema);
}

interface Filling {
  readonly schema: string;
  readonly size: LargeTables;
  readonly now: number;
  readonly q: number;
  readonly x: number;
}

/** The statements that fill each table. Batches of 100 messages have gone the same way. */
function textsOf({ schema, size, now, q, x }: Filling) {
  const { terminal, future, waiting, blocked, idleValues } = size;
  const [waits, ends] = [terminal + future + 1, terminal + future + waiting];
  const metadata = (n: string) => `(case
    when ${n} > ${ends - 3} then json_build_object('kind', 'a', 'tenant', 't' || ${n} % 100, 'region', 'us')
    when ${n} >= ${waits} and ${n} % 10 = 0 then json_build_object('kind', 'a', 'tenant', 't' || ${n} % 100, 'order', 'o' || ${n})
    else json_build_object('kind', 'a', 'tenant', 't' || ${n} % 100) end)::jsonb`;
  const endState = '(case when (n - 1) / 100 % 20 = 0 then 5 when (n - 1) / 100 % 20 = 1 then 4 else 3 end)';
  // Within the last day, half of them before midnight and half after, whatever the hour: each partition has its share.
  const midnight = Math.floor(now / day) * day;
  const half = Math.ceil(terminal / 2);
  const endedAt = `(case when n <= ${half} then ${now - day} + n::bigint * ${midnight - now + day - 1} / ${half}
    else ${midnight} + (n - ${half})::bigint * ${Math.max(1, now - 60_000 - midnight)} / ${half} end)`;
  const hashOf = (pair: string) => `hashtextextended(${pair}, 0)`;
  const pairOf = (key: string, value: string) => `${schema}.pair_of('${key}', ${value})`;
  const payload = `'{"order":' || n || ',"what":"something of the usual size of a small message","for":"somebody"}'`;
  const live = `insert into ${schema}.messages (seq, priority, due_at, visible_at, enqueued_at, version, queue_no, attempts, attempts_max,
    state, unique_while_live, id, lease, value, payload, metadata) select`;
  const value = `case when n <= ${ends + 1 + blocked} then 'busy' else 'u' || n end`;
  const atOf = (n: string) => `${now - 3_600_000} + ${n} % 3500000`;
  const pair = `insert into ${schema}.pairs (queue_no, pair, priority, seq) select`;
  const depth = `insert into ${schema}.depth (queue_no, pair, invisible, pending, running) select`;
  const allX = `generate_series(${ends + 1}, ${ends + 1 + blocked + idleValues}) n`;
  return {
    messages: [
      `${live} n, ${atOf('n')}, ${now + 3_600_000} + n::bigint * 1000, ${now + 3_600_000} + n::bigint * 1000, ${atOf('n')}, 1, ${q}, 0, 3,
        0, false, ${idOf('n')}, null, null, ${payload}, ${metadata('n')} from generate_series(${terminal + 1}, ${terminal + future}) n`,
      `${live} n, ${atOf('n')}, null, ${atOf('n')}, ${atOf('n')}, 1, ${q}, 0, 3,
        1, false, ${idOf('n')}, null, null, ${payload}, ${metadata('n')} from generate_series(${waits}, ${ends}) n`,
      `${live} n, n, case when n = ${ends + 1} then ${now + 3_600_000} end, ${now - 1_000}, ${now - 1_000}, case when n = ${ends + 1} then 2 else 1 end,
        ${x}, case when n = ${ends + 1} then 1 else 0 end, 3, case when n = ${ends + 1} then 2 else 1 end, false, ${idOf('n')},
        case when n = ${ends + 1} then 'runs.nonce' end, ${value}, '{}', jsonb_build_object('user', ${value}) from ${allX}`,
    ],
    pairs: [
      `${pair} ${q}, ${hashOf(pairOf('kind', `'a'`))}, ${atOf('n')}, n from generate_series(${waits}, ${ends}) n`,
      `${pair} ${q}, ${hashOf(pairOf('tenant', `'t' || n % 100`))}, ${atOf('n')}, n from generate_series(${waits}, ${ends}) n`,
      `${pair} ${q}, ${hashOf(pairOf('order', `'o' || n`))}, ${atOf('n')}, n from generate_series(${waits}, ${ends - 3}) n where n % 10 = 0`,
      `${pair} ${q}, ${hashOf(pairOf('region', `'us'`))}, ${atOf('n')}, n from generate_series(${ends - 2}, ${ends}) n`,
      `${pair} ${x}, ${hashOf(pairOf('user', value))}, n, n from ${allX} where n > ${ends + 1}`,
    ],
    exclusive_values: [
      `insert into ${schema}.exclusive_values (queue_no, value, running_seq, head_priority, head_seq)
        select ${x}, ${value}, null, n, n from ${allX} where n > ${ends + 1 + blocked}`,
      `insert into ${schema}.exclusive_values (queue_no, value, running_seq) values (${x}, 'busy', ${ends + 1})`,
    ],
    depth: [
      `${depth} ${q}, p, ${future}, ${waiting}, 0 from (values (''), (${pairOf('kind', `'a'`)})) p(p)`,
      `${depth} ${q}, ${pairOf('tenant', `'t' || n`)}, ${future / 100}, ${waiting / 100}, 0 from generate_series(0, 99) n`,
      `${depth} ${q}, ${pairOf('order', `'o' || n`)}, 0, 1, 0 from generate_series(${waits}, ${ends - 3}) n where n % 10 = 0`,
      `${depth} ${q}, ${pairOf('region', `'us'`)}, 0, 3, 0`,
      `${depth} ${x}, '', 0, ${blocked + idleValues}, 1`,
      `${depth} ${x}, ${pairOf('user', `'busy'`)}, 0, ${blocked}, 1`,
      `${depth} ${x}, ${pairOf('user', `'u' || n`)}, 0, 1, 0 from ${allX} where n > ${ends + 1 + blocked}`,
    ],
    ids: [
      `insert into ${schema}.ids (seq, payload_hash, queue_no, id) select n, hashtextextended(${payload}, 0),
        case when n > ${ends} then ${x} else ${q} end, ${idOf('n')} from generate_series(1, ${ends + 1 + blocked + idleValues}) n`,
    ],
    finished: [
      `insert into ${schema}.finished (seq, priority, visible_at, enqueued_at, started_at, finished_at, expires_at, version, queue_no,
          attempts, attempts_max, state, lease_end, unique_while_live, id, lease, payload, metadata, worker, error, result)
        select n, ${endedAt} - 100, ${endedAt} - 100, ${endedAt} - 100, ${endedAt} - 50, ${endedAt},
          ${endedAt} + case ${endState} when 5 then 7 else 1 end * ${day}::bigint, 3, ${q}, 1, 3, ${endState},
          case ${endState} when 5 then 2 when 4 then 4 else 1 end, false, ${idOf('n')}, 'r' || (n - 1) / 100 || '.nonce', ${payload},
          ${metadata('n')}, 'worker-1', case when ${endState} = 5 then 'it was refused' end, case when ${endState} = 3 then '{"sent":true}' end
        from generate_series(1, ${terminal}) n`,
    ],
    events: [
      `insert into ${schema}.events (queue_no, from_state, to_state, at, first_seq, last_seq, versions, attempts)
        select ${q}, e.from_state, coalesce(e.to_state, ${endState}), ${endedAt} - e.before, n, n + 99, e.versions, e.attempts
        from generate_series(1, ${terminal}, 100) n cross join (values (null::integer, 1, 100, null::bigint[], null::integer[]),
          (1, 2, 50, '{2}', '{1}'), (2, null, 0, '{3}', '{1}')) e(from_state, to_state, before, versions, attempts)`,
      `insert into ${schema}.events (queue_no, to_state, at, first_seq, last_seq)
        select ${q}, case when n < ${waits} then 0 else 1 end, ${now - 1_000}, n, n + 99 from generate_series(${terminal + 1}, ${ends}, 100) n`,
    ],
  };
}

/** Statements that drop the indexes of a table and make them again: of millions of rows that is several times as fast. */
async function indexesOf(
  database: Database,
  schema: string,
  table: string,
): Promise<{ drop: string; create: string }> {
  const { rows } = await database.query<{ name: string; made: string; constraint: string | null }>(
    `select c.relname as name, pg_get_indexdef(i.indexrelid) as made, pg_get_constraintdef(k.oid) as constraint
     from pg_index i join pg_class c on c.oid = i.indexrelid left join pg_constraint k on k.conindid = i.indexrelid
     where i.indrelid = $1::regclass order by c.relname`,
    [`${schema}.${table}`],
  );
  return {
    drop: rows
      .map(({ name, constraint }) =>
        constraint === null
          ? `drop index ${schema}.${name}`
          : `alter table ${schema}.${table} drop constraint ${name}`,
      )
      .join(';'),
    create: rows
      .map(({ name, made, constraint }) =>
        constraint === null
          ? made.replace(' ON ONLY ', ' ON ')
          : `alter table ${schema}.${table} add constraint ${name} ${constraint}`,
      )
      .join(';'),
  };
}

/** Autovacuum visits the partitions and never their parents. */
async function analyzeAsAutovacuum(database: Database, schema: string): Promise<void> {
  const { rows } = await database.query<{ name: string }>(
    `select c.oid::regclass::text as name from pg_class c where c.relnamespace = $1::regnamespace and c.relkind = 'r'`,
    [schema],
  );
  for (const { name } of rows) await database.script(`vacuum (analyze) ${name}`);
}

/**
 * Makes the planner believe what it believed when nothing waited and nothing ran: analyze comes after fifty thousand changes
 * at the earliest, and a queue that was empty then may hold millions now.
 */
export async function forgetWaiting(database: Database, schema: string): Promise<void> {
  await database.script(`
    create table ${schema}.messages_then (like ${schema}.messages);
    insert into ${schema}.messages_then select * from ${schema}.messages where state = 0 limit 30000;
    analyze ${schema}.messages_then;
    delete from pg_statistic where starelid = '${schema}.messages'::regclass;
    update pg_statistic set starelid = '${schema}.messages'::regclass where starelid = '${schema}.messages_then'::regclass;
    drop table ${schema}.messages_then;
    delete from pg_statistic where starelid in ('${schema}.pairs'::regclass, '${schema}.exclusive_values'::regclass, '${schema}.depth'::regclass)`);
}
