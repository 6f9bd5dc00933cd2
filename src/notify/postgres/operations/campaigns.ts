/** Campaigns: how far the stream of recipients has got, and what became of those that were taken. */
import type { DeliveryState } from '../../notification.js';
import type { CampaignState, CampaignStore } from '../../people-store.js';
import { pausedPollMs } from '../deadline-sql.js';
import { nowSql } from '../time.js';

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
  const one = `select id, kind, state, taken from ${schema}.campaigns where id = $1`;
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
      const row = (await on.query<{ kind: string; state: CampaignState; taken: string }>(one, [id])).rows[0];
      if (!row) return undefined;
      const { rows } = await on.query<{ state: DeliveryState; count: string }>(counts, [id]);
      const count = (state: DeliveryState): number =>
        Number(rows.find((one) => one.state === state)?.count ?? 0);
      return {
        id,
        kind: row.kind,
        state: row.state,
        taken: Number(row.taken),
        waiting: count('waiting') + count('sending'),
        sent: count('sent'),
        failed: count('failed'),
        expired: count('expired'),
        suppressed: count('suppressed'),
        ambiguous: count('ambiguous'),
      };
    },

    async suppressCampaign(on, { id, limit, now }) {
      return (await on.query(suppress, [id, limit, now ?? null])).rowCount;
    },
  };
}
