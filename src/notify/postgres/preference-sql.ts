/** Whether a delivery is switched off by its user, as SQL: the most specific wish decides, and none means on. */
export function isEnabled(schema: string, row: string): string {
  return `coalesce((
    select p.enabled from ${schema}.preferences p
    where p.user_id = ${row}.user_id and p.kind in (${row}.kind, '*') and p.channel in (${row}.channel, '*')
    order by p.kind <> '*' desc, p.channel <> '*' desc limit 1), true)`;
}
