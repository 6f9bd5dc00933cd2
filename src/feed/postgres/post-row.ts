/** The columns of a post as every statement selects them, and their mapping. */
import type { AuthorMode } from '../account.js';
import type { Visibility } from '../post.js';
import type { StoredPost } from '../store.js';

export type PostRow = {
  id: string;
  author: string;
  key: string | null;
  body: string | null;
  data: string | null;
  visibility: Visibility;
  repost_of: string | null;
  created_at: string;
  edited_at: string | null;
  deleted_at: string | null;
  mode: AuthorMode;
  fan_out_done: boolean;
};

/** Columns and the join of `posts p` with its author's account, without those that are erased. */
export function postColumns(schema: string): string {
  return `p.id, a.id as author, p.key, p.body, p.data, p.visibility, p.repost_of, p.created_at, p.edited_at, p.deleted_at,
      p.mode, u.post is null as fan_out_done
    from ${schema}.posts p join ${schema}.accounts a on a.number = p.author and a.erased_at is null
    left join ${schema}.fan_outs u on u.post = p.id`;
}

export function postFromRow(row: PostRow): StoredPost {
  return {
    id: row.id,
    author: row.author,
    key: row.key ?? undefined,
    text: row.body ?? undefined,
    data: row.data === null ? undefined : JSON.parse(row.data),
    visibility: row.visibility,
    repostOf: row.repost_of ?? undefined,
    createdAt: Number(row.created_at),
    editedAt: row.edited_at === null ? undefined : Number(row.edited_at),
    mode: row.mode,
    fanOutDone: row.fan_out_done,
    deleted: row.deleted_at !== null,
  };
}
