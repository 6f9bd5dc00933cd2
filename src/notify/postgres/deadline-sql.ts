/**
 * How soon a delivery of a paused campaign is looked at again. Its deadline moves by twice of it more than by the pause:
 * after a resume its wake-up may be that late.
 */
export const pausedPollMs = 2_000;

/** The deadline of a delivery `d` at the time `clock.now`, as SQL: while its campaign is paused, its clock stands still. */
export function deadlineOf(schema: string): string {
  return `(d.expires_at + coalesce((
        select c.paused_ms + case c.state when 'paused' then clock.now - c.paused_at else 0 end
        from ${schema}.campaigns c where c.id = d.campaign), 0))`;
}
