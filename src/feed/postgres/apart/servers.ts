/**
 * Which servers hold the timelines. A server is known by its run and replication id; one that comes back as another may lack
 * the last moments before. Guarantees: no reply of a server counts before it is adopted; what the journal holds is due again
 * with the adoption, and where a server has forgotten more than the journal holds, all timelines of before are built anew.
 */
import type { Queryable } from '../../../database/index.js';
import type { FanOutLane } from '../../operate.js';
import type { ApartTimelines, ListServer, ServersState } from '../../store.js';
import { nowSql } from '../time.js';
import type { Apart } from './operations.js';

/**
 * What a server may lose with its last moments: a second with an append-only file synced each second, what was on its way to
 * the replica that took over otherwise. A minute is far beyond both, and a minute of posts is soon pushed again.
 */
const journalKeptMs = 60_000;
/** So long nobody must have worked with the servers of before, unless this process did; a worker tells each second. */
const silenceMs = 2_500;

/** Servers of before, as this process has found them: by whom nothing is told any more they can be replaced. */
interface Before {
  readonly beats: ReadonlyMap<string, string>;
  readonly sinceMs: number;
}

export function serversApart({ schema, lists }: Apart): ApartTimelines {
  const time = `select ${nowSql('$1')} as now`;
  const held = `select id, beats from ${schema}.timeline_servers order by id`;
  const beat = `
    with purged as (delete from ${schema}.timeline_journal where at < $2),
    bound as (
      insert into ${schema}.progress (name, "position") values ('timeline-journal', $2)
      on conflict (name) do update set "position" = greatest(progress."position", excluded."position"))
    update ${schema}.timeline_servers set beats = beats + 1 where id = any($1::text[])`;
  let before: Before | undefined;
  let elsewhere = false;

  async function compare(on: Queryable, servers: readonly ListServer[]): Promise<ServersState> {
    const { rows } = await on.query<{ id: string; beats: string }>(held, []);
    const others = rows.filter(({ id }) => !servers.some((server) => server.id === id));
    if (others.length === 0 && rows.length === servers.length) {
      before = undefined;
      elsewhere = false;
      return { kind: 'trusted' };
    }
    const known = await Promise.all(others.map(({ id }) => lists.hasKnown(id)));
    if (known.every(Boolean)) return { kind: 'new', servers };
    const isMoving = others.some(({ id, beats }) => (before?.beats.get(id) ?? beats) !== beats);
    if (isMoving) elsewhere = true;
    if (before === undefined || isMoving) {
      before = { beats: new Map(others.map(({ id, beats }) => [id, beats])), sinceMs: performance.now() };
    }
    if (performance.now() - before.sinceMs > silenceMs) return { kind: 'new', servers };
    return elsewhere ? { kind: 'elsewhere', servers: others.map(({ id }) => id) } : { kind: 'waiting' };
  }

  return {
    name: lists.name,
    isConnected: () => lists.isConnected(),

    async checkServers(on, { now }) {
      const asked = Number((await on.query<{ now: string }>(time, [now ?? null])).rows[0]?.now);
      let servers: readonly ListServer[];
      try {
        servers = await lists.servers();
      } catch (error) {
        // The journal is kept until all have answered: nobody knows what they have lost.
        return { kind: 'away', error };
      }
      const state = await compare(on, servers);
      if (state.kind === 'trusted') {
        const ids = servers.map(({ id }) => id);
        await lists.beat(asked);
        await on.query(beat, [ids, asked - journalKeptMs]);
      }
      return state;
    },

    adoptServers: adoption(schema),
  };
}

function adoption(schema: string): ApartTimelines['adoptServers'] {
  // Waits for whoever is marking something as done; what they mark is in the journal afterwards.
  const replace = `
    with before as (select coalesce(max(tokens_from), 0) as tokens_from from ${schema}.timeline_servers),
    gone as (delete from ${schema}.timeline_servers where id <> all($1::text[]))
    select tokens_from from before`;
  // The journal reaches back to its bound; a server that has forgotten more puts all earlier builds in doubt.
  const trust = `
    insert into ${schema}.timeline_servers (id, tokens_from)
    select s.id, case
      when s.beat >= (select "position" from ${schema}.progress where name = 'timeline-journal') then $3::bigint
      else nextval('${schema}.timeline_tokens') end
    from unnest($1::text[], $2::bigint[]) as s (id, beat)
    on conflict (id) do nothing`;
  const pushAgain = `
    with lost as (
      select distinct on (j.post) j.post, j.author, j.lane, j.published_at
      from ${schema}.timeline_journal j
      join ${schema}.posts p on p.id = j.post and p.deleted_at is null
      join ${schema}.accounts a on a.number = j.author and a.erased_at is null
      where j.post is not null order by j.post),
    ranges as (delete from ${schema}.fan_out_batches b using lost where b.post = lost.post)
    insert into ${schema}.fan_outs as w (post, author, lane, published_at)
    -- Overdue: merged at read until they are there again.
    select post, author, lane, least(published_at, ${nowSql('$2')} - $1 - 1) from lost
    on conflict (post) do update set batches = null, published_at = excluded.published_at
    returning w.post, w.lane`;
  const lockReaders = `
    select account from ${schema}.readers
    where account in (select reader from ${schema}.timeline_journal where reader is not null)
      and state in ('building', 'live')
    order by account for update`;
  const drop = `update ${schema}.readers set state = 'none', token = 0, floor = 0 where account = any($1::bigint[])`;
  return async (on, { servers, lagMaxMs, now }) => {
    const ids = servers.map(({ id }) => id);
    const { rows: before } = await on.query<{ tokens_from: string }>(replace, [ids]);
    const beats = servers.map((server) => server.beat);
    await on.query(trust, [ids, beats, before[0]?.tokens_from ?? '0']);
    const { rows } = await on.query<{ post: string; lane: FanOutLane }>(pushAgain, [lagMaxMs, now ?? null]);
    const readers = (await on.query<{ account: string }>(lockReaders, [])).rows;
    if (readers.length > 0) await on.query(drop, [readers.map(({ account }) => account)]);
    return rows;
  };
}
