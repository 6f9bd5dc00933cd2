/** Campaigns: how far the stream of recipients has got, and what became of those that were taken. */
import type { DeliveryState } from '../../notification.js';
import type { CampaignState, CampaignStore, CampaignSummary } from '../../people-store.js';
import { pausedPollMs } from '../deadline-sql.js';
import { nowSql } from '../time.js';

interface CampaignRow extends Record<string, unknown> {
  readonly id: string;
  readonly kind: string;
  readonly state: CampaignState;
  readonly taken: string;
  readonly created_at: string;
}

export function campaignOperations(schema: string): CampaignStore {
  const put = `
    insert into ${schema}.campaigns (id, kind, created_at, changed_at) values ($1, $2, ${nowSql('$3')}, ${nowSql('$3')})
    on conflict do nothing`;
  const take = `
    update ${schema}.campaigns set taken = taken + $2::bigint, changed_at = ${nowSql('$3')} where id = $1 returning state`;
  const move = `
    update ${schema}.campaigns set state = $3, changed_at = ${nowSql('$4')},
      paused_ms = paused_ms + case state when 'paused' then ${nowSql('$4')} - paused_at + ${2 * pausedPollMs} else 0 end,
      paused_at = case $3 when 'paused' then ${nowSql('$4')} end
    where id = $1 and state = any($2::text[])`;
  const columns = 'id, kind, state, taken, created_at';
  const one = `select ${columns} from ${schema}.campaigns where id = $1`;
  const list = `
    select ${columns} from ${schema}.campaigns
    where ($1::text is null or state = $1)
      and ($2::text is null or (created_at, id) < (select b.created_at, b.id from ${schema}.campaigns b where b.id = $2))
    order by created_at desc, id desc limit $3`;
  const counts = `
    select state, count(*) as count from ${schema}.deliveries where campaign = $1 group by state`;
  const suppress = `
    with clock as materialized (select ${nowSql('$3')} as now),
    r as materialized (
      select d.id, clock.now from ${schema}.deliveries d cross join clock
      where d.campaign = $1 and d.state = 'waiting' limit $2 for update of d skip locked),
    moved as (
      update ${schema}.deliveries d set state = 'suppressed', reason = 'campaign canceled', finished_at = r.now
      from r where d.id = r.id),
    noted as (
      insert into ${schema}.history (delivery, at, event, detail)
      select r.id, r.now, 'suppressed', 'campaign canceled' from r)
    select id from r`;

  return {
    async putCampaign(on, { id, kind, now }) {
      await on.query(put, [id, kind, now ?? null]);
    },

    async takeRecipients(on, { id, count, now }) {
      return (await on.query<{ state: CampaignState }>(take, [id, count, now ?? null])).rows[0]?.state;
    },

    async moveCampaign(on, { id, from, to, now }) {
      return (await on.query(move, [id, from, to, now ?? null])).rowCount > 0;
    },

    async campaign(on, id) {
      const row = (await on.query<CampaignRow>(one, [id])).rows[0];
      if (!row) return undefined;
      const { rows } = await on.query<{ state: DeliveryState; count: string }>(counts, [id]);
      const count = (state: DeliveryState): number =>
        Number(rows.find((one) => one.state === state)?.count ?? 0);
      return {
        ...summaryOf(row),
        waiting: count('waiting') + count('sending'),
        sent: count('sent'),
        failed: count('failed'),
        expired: count('expired'),
        suppressed: count('suppressed'),
        ambiguous: count('ambiguous'),
      };
    },

    async campaigns(on, { state, before, limit }) {
      const { rows } = await on.query<CampaignRow>(list, [state ?? null, before ?? null, limit]);
      return rows.map(summaryOf);
    },

    async suppressCampaign(on, { id, limit, now }) {
      return (await on.query(suppress, [id, limit, now ?? null])).rowCount;
    },
  };
}

function summaryOf({ id, kind, state, taken, created_at: createdAt }: CampaignRow): CampaignSummary {
  return { id, kind, state, taken: Number(taken), createdAt: Number(createdAt) };
}
