/** The shared state of providers: one row each, changed in single statements by reports that each worker has summed up. */
import type { Queryable } from '../../../database/index.js';
import type { Now, ProviderReport, ProviderState, ProviderStore } from '../../store.js';
import { nowSql } from '../time.js';

interface StateRow extends Record<string, unknown> {
  readonly name: string;
  readonly open_in_ms: string | null;
  readonly probe_in_ms: string | null;
  readonly paused_in_ms: string | null;
  readonly open_reason: string | null;
}

export function providerOperations(schema: string): ProviderStore {
  const columns = `p.name, p.open_until - clock.now as open_in_ms, p.probe_until - clock.now as probe_in_ms,
    p.paused_until - clock.now as paused_in_ms, p.open_reason`;
  const put = `
    insert into ${schema}.providers (name) select * from unnest($1::text[]) order by 1 on conflict do nothing`;
  const read = `
    with clock as materialized (select ${nowSql('$1')} as now)
    select ${columns} from ${schema}.providers p cross join clock`;
  // Within a window the shares are summed up; a run of unanswered calls is ended by any answer.
  const report = `
    with clock as materialized (select ${nowSql('$10')} as now),
    old as materialized (
      select p.*, clock.now,
        case when clock.now - p.window_at < $8::bigint then p.window_calls else 0 end + $2::integer as calls,
        case when clock.now - p.window_at < $8::bigint then p.window_errors else 0 end + $3::integer as errors,
        case when $5::boolean then 0 else p.unanswered end + $4::integer as run
      from ${schema}.providers p cross join clock where p.name = $1 for update of p),
    judged as materialized (
      select o.*, case
          when $6::text is not null then 'configuration: ' || $6
          when o.open_until is not null and not $5::boolean and $3::integer > 0 then o.open_reason
          when o.run >= $9::integer then 'unanswered calls in a row'
          when o.errors >= $11::integer and o.errors >= o.calls * $12::double precision then 'too many errors'
        end as opens
      from old o),
    changed as (
      update ${schema}.providers p set
        window_at = case when j.now - p.window_at < $8::bigint then p.window_at else j.now end,
        window_calls = case when j.opens is null then j.calls else 0 end,
        window_errors = case when j.opens is null then j.errors else 0 end,
        unanswered = case when j.opens is null then j.run else 0 end,
        -- Open stays open until a probe after its time has been answered well.
        open_until = case
          when j.opens is not null then greatest(j.now + $7::bigint, coalesce(p.open_until, 0))
          when p.open_until <= j.now and $2::integer > $3::integer then null
          else p.open_until end,
        open_reason = coalesce(j.opens, p.open_reason),
        probe_until = case when p.open_until <= j.now then null else p.probe_until end,
        paused_until = greatest(p.paused_until, j.now + $13::bigint)
      from judged j where p.name = j.name
      returning p.*, j.now, j.opens is not null and (j.open_until is null) as just_opened,
        j.open_until is not null and p.open_until is null as just_closed)
    select p.name, p.open_until - p.now as open_in_ms, p.probe_until - p.now as probe_in_ms,
      p.paused_until - p.now as paused_in_ms, p.open_reason, p.just_opened, p.just_closed from changed p`;
  const probe = `
    with clock as materialized (select ${nowSql('$3')} as now)
    update ${schema}.providers p set probe_until = clock.now + $2::bigint from clock
    where p.name = $1 and p.open_until <= clock.now and coalesce(p.probe_until, 0) <= clock.now`;
  // Who has waited for the row has an older time than the one before: it must not be refilled for the same time twice.
  // $2 wanted, $3 urgent, $4 general a second, $5 reserved a second, $6 capacity in ms of rate.
  const refill = (column: string, rate: string): string =>
    `least(greatest(1, ${rate} * $6::double precision / 1000), p.${column} + ${rate} * greatest(0, clock.now - p.refilled_at) / 1000.0)`;
  const take = `
    with clock as materialized (select ${nowSql('$7')} as now),
    full_ as materialized (
      select p.name, greatest(p.refilled_at, clock.now) as refilled_at, ${refill('general', '$4::double precision')} as general,
        case when $5::double precision > 0 then ${refill('reserved', '$5::double precision')} else 0 end as reserved
      from ${schema}.providers p cross join clock where p.name = $1 for update of p),
    split as materialized (
      select f.*, least($2::integer, floor(f.general))::integer as from_general,
        case when $3::boolean then least($2::integer - least($2::integer, floor(f.general))::integer, floor(f.reserved))::integer
          else 0 end as from_reserved
      from full_ f),
    taken as (
      update ${schema}.providers p set general = s.general - s.from_general, reserved = s.reserved - s.from_reserved,
        refilled_at = s.refilled_at
      from split s where p.name = s.name)
    select from_general + from_reserved as granted,
      ceil((1 - (general - from_general)) * 1000 / greatest($4::double precision, 0.001))::bigint as wait_ms,
      ceil((1 - (reserved - from_reserved)) * 1000 / greatest($5::double precision, 0.001))::bigint as reserved_wait_ms
    from split`;

  return {
    async putProviders(on, { names }) {
      await on.query(put, [names]);
    },

    async providerStates(on: Queryable, { now }: { now: Now }) {
      const { rows } = await on.query<StateRow>(read, [now ?? null]);
      return rows.map(stateOf);
    },

    async reportProvider(on, input) {
      const { name, report: sums, limits, now } = input;
      const { rows } = await on.query<StateRow & { just_opened: boolean; just_closed: boolean }>(report, [
        name,
        ...valuesOf(sums),
        limits.coolDownMs,
        limits.windowMs,
        limits.unanswered,
        now ?? null,
        limits.errors,
        limits.share,
        sums.pausedMs ?? null,
      ]);
      const row = rows[0];
      return row && { ...stateOf(row), justOpened: row.just_opened, justClosed: row.just_closed };
    },

    async takeProbe(on, { name, probeMs, now }) {
      return (await on.query(probe, [name, probeMs, now ?? null])).rowCount > 0;
    },

    async takeTokens(on, { name, wanted, urgent, perSecond, reserved, capacityMs, now }) {
      const { rows } = await on.query<{ granted: number; wait_ms: string; reserved_wait_ms: string }>(take, [
        name,
        wanted,
        urgent,
        perSecond - reserved,
        reserved,
        capacityMs,
        now ?? null,
      ]);
      const row = rows[0];
      if (!row) return { granted: 0, waitMs: 1_000 };
      const waits = [row.wait_ms, ...(urgent && reserved > 0 ? [row.reserved_wait_ms] : [])].map(Number);
      return { granted: Number(row.granted), waitMs: Math.max(1, Math.min(...waits)) };
    },
  };
}

function valuesOf({ calls, errors, unanswered, answered, configuration }: ProviderReport): unknown[] {
  return [calls, errors, unanswered, answered, configuration ?? null];
}

function stateOf(row: StateRow): ProviderState {
  const ms = (value: string | null): number | undefined => (value === null ? undefined : Number(value));
  return {
    name: row.name,
    openInMs: ms(row.open_in_ms),
    probeInMs: ms(row.probe_in_ms),
    pausedInMs: ms(row.paused_in_ms),
    reason: row.open_reason ?? undefined,
  };
}
