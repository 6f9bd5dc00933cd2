/** Posts on Postgres: the only durable truth of what was published. */
import type { AuthorMode } from '../account.js';
import type { PostStore } from '../store.js';
import { type PostRow, postColumns, postFromRow } from './post-row.js';
import { largestBigint, nowSql, postIdSql } from './time.js';

export function postOperations(schema: string): PostStore {
  return { ...publishOperations(schema), ...readOperations(schema), ...changeOperations(schema) };
}

function publishOperations(
  schema: string,
): Pick<PostStore, 'holdAuthor' | 'forcePull' | 'repostable' | 'insertPost' | 'existingPost'> {
  const hold = `
    select w.account, w.mode, w.followers from ${schema}.accounts a join ${schema}.authors w on w.account = a.number
    where a.id = $1 and a.erased_at is null for key share of a for share of w`;
  const beginAuthor = `
    insert into ${schema}.authors (account)
    select number from (
      select number from ${schema}.accounts where id = $1 and erased_at is null for key share) held
    on conflict do nothing`;
  const forcePull = `
    update ${schema}.authors set mode = 'pull', pushed_since = ${largestBigint} where account = $1 and mode <> 'pull'`;
  const original = `
    select o.id, o.author, o.visibility,
      exists (
        select 1 from ${schema}.blocks b
        where (b.blocker = o.author and b.blocked = $2) or (b.blocker = $2 and b.blocked = o.author)) as barred
    from ${schema}.posts p
    join ${schema}.posts o on o.id = coalesce(p.repost_of, p.id)
    join ${schema}.accounts a on a.number = o.author and a.erased_at is null
    where p.id = $1 and p.deleted_at is null and o.deleted_at is null`;
  const markReposted = `update ${schema}.posts set has_reposts = true where id = $1 and not has_reposts`;
  const insert = `
    with clock as (select ${nowSql('$10')} as now),
    post as (
      insert into ${schema}.posts (id, author, key, body, data, visibility, repost_of, mode, created_at)
      select ${postIdSql(schema, 'least(coalesce($8::bigint, clock.now), clock.now)', '$11::bigint')},
        $1, $2, $3, $4, $5, $6, $7, least(coalesce($8::bigint, clock.now), clock.now)
      from clock
      on conflict do nothing
      returning id, author, mode),
    own_entry as (
      insert into ${schema}.timeline (reader, post)
      select r.account, post.id from post join ${schema}.readers r on r.account = post.author
      where r.state in ('building', 'live') and post.id > r.floor
      on conflict do nothing),
    work as (
      insert into ${schema}.fan_outs (post, author, lane, published_at)
      select post.id, post.author, $9, clock.now from post, clock where post.mode = 'push')
    select id from post`;
  const existing = `
    select ${postColumns(schema)} where p.author = $1 and (p.key = $2 or (p.repost_of = $3 and p.deleted_at is null))
    order by p.key = $2 desc nulls last limit 1`;

  return {
    async holdAuthor(on, id) {
      type AuthorRow = { account: string; mode: AuthorMode; followers: string };
      let { rows } = await on.query<AuthorRow>(hold, [id]);
      if (rows.length === 0) {
        await on.query(beginAuthor, [id]);
        rows = (await on.query<AuthorRow>(hold, [id])).rows;
      }
      const row = rows[0];
      return row && { account: row.account, mode: row.mode, followers: Number(row.followers) };
    },

    async forcePull(on, account) {
      await on.query(forcePull, [account]);
    },

    async repostable(on, { id, author }) {
      const { rows } = await on.query<{ id: string; author: string; visibility: string; barred: boolean }>(
        original,
        [id, author],
      );
      const row = rows[0];
      if (!row) return { kind: 'unknown' };
      if (row.barred || (row.visibility !== 'public' && row.author !== author)) return { kind: 'refused' };
      await on.query(markReposted, [row.id]);
      return { kind: 'original', id: row.id };
    },

    async insertPost(on, { post, author, lane, sequence, now }) {
      const { rows } = await on.query<{ id: string }>(insert, [
        author.account,
        post.key,
        post.text,
        post.data,
        post.visibility,
        post.repostOf,
        author.mode,
        post.createdAt,
        lane,
        now ?? null,
        sequence ?? null,
      ]);
      return rows[0]?.id;
    },

    async existingPost(on, { author, key, repostOf }) {
      const { rows } = await on.query<PostRow>(existing, [author, key, repostOf]);
      return rows[0] && postFromRow(rows[0]);
    },
  };
}

function readOperations(schema: string): Pick<PostStore, 'post' | 'maySee' | 'accountPosts' | 'allPosts'> {
  const one = `select ${postColumns(schema)} where p.id = $1`;
  const maySee = `
    select 1 from ${schema}.posts p
    join ${schema}.accounts v on v.id = $2 and v.erased_at is null
    where p.id = $1 and (p.author = v.number or (
      (p.visibility = 'public' or exists (
        select 1 from ${schema}.follows f where f.follower = v.number and f.followee = p.author and f.kept_until is null))
      and not exists (select 1 from ${schema}.blocks b where b.blocker = p.author and b.blocked = v.number)
      and not exists (select 1 from ${schema}.blocks b where b.blocker = v.number and b.blocked = p.author)))`;
  // Without a viewer, or one that is gone: a stranger.
  const ofAccount = `
    select ${postColumns(schema)}
    left join ${schema}.accounts v on v.id = $2 and v.erased_at is null
    where p.author = (select number from ${schema}.accounts where id = $1 and erased_at is null)
      and p.deleted_at is null and p.id < $3
      and (p.author = v.number or (
        (p.visibility = 'public' or exists (
          select 1 from ${schema}.follows f where f.follower = v.number and f.followee = p.author and f.kept_until is null))
        and not exists (select 1 from ${schema}.blocks b where b.blocker = p.author and b.blocked = v.number)
        and not exists (select 1 from ${schema}.blocks b where b.blocker = v.number and b.blocked = p.author)
        and not exists (
          select 1 from ${schema}.fan_outs w where w.post = p.id and w.published_at >= ${nowSql('$6')} - $5)))
    order by p.id desc limit $4`;
  const all = `select ${postColumns(schema)} where p.id < $1 and p.deleted_at is null order by p.id desc limit $2`;

  return {
    async post(on, id) {
      const { rows } = await on.query<PostRow>(one, [id]);
      return rows[0] && postFromRow(rows[0]);
    },

    async maySee(on, { id, viewer }) {
      return (await on.query(maySee, [id, viewer])).rowCount > 0;
    },

    async accountPosts(on, { account, viewer, before, limit, lagMaxMs, now }) {
      const values = [account, viewer ?? null, before ?? largestBigint, limit, lagMaxMs, now ?? null];
      return (await on.query<PostRow>(ofAccount, values)).rows.map(postFromRow);
    },

    async allPosts(on, { before, limit }) {
      return (await on.query<PostRow>(all, [before ?? largestBigint, limit])).rows.map(postFromRow);
    },
  };
}

function changeOperations(schema: string): Pick<PostStore, 'updatePost' | 'deletePost'> {
  const update = `
    update ${schema}.posts set
      body = case when $2 then $3 else body end,
      data = case when $4 then $5 else data end,
      edited_at = ${nowSql('$6')}
    where id = $1 and deleted_at is null and repost_of is null
      and (case when $2 then $3 else body end is not null or case when $4 then $5 else data end is not null)`;
  // The row stays as a mark, without its content, so that the key keeps its meaning until vacuum.
  const remove = `
    update ${schema}.posts set deleted_at = ${nowSql('$2')}, body = null, data = null where id = $1 and deleted_at is null`;
  return {
    async updatePost(on, { id, text, data, now }) {
      const values = [id, text !== undefined, text ?? null, data !== undefined, data ?? null, now ?? null];
      return (await on.query(update, values)).rowCount > 0;
    },

    async deletePost(on, { id, now }) {
      return (await on.query(remove, [id, now ?? null])).rowCount > 0;
    },
  };
}
