/**
 * Into how many buckets the readers are spread: all processes use the number that the database keeps. A number that somebody
 * asks for and that differs replaces it, and all timelines are built anew.
 */
import type { Apart } from './operations.js';

const name = 'timeline-buckets';

export async function useBuckets({ schema, database, lists }: Apart): Promise<void> {
  const first = `
    insert into ${schema}.progress (name, "position") values ($1, $2) on conflict (name) do nothing`;
  const held = `select "position" from ${schema}.progress where name = $1`;
  const replace = `
    with changed as (update ${schema}.progress set "position" = $2 where name = $1 and "position" <> $2 returning 1)
    update ${schema}.timeline_servers set tokens_from = nextval('${schema}.timeline_tokens')
    where exists (select 1 from changed)`;
  const count = async (): Promise<number | undefined> => {
    const position = (await database.query<{ position: string }>(held, [name])).rows[0]?.position;
    return position === undefined ? undefined : Number(position);
  };
  const known = await count();
  const wanted = await lists.bucketsWanted(known);
  await database.query(first, [name, wanted]);
  if (wanted !== known) await database.query(replace, [name, wanted]);
  lists.useBuckets((await count()) ?? wanted);
}
