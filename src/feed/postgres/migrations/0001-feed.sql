-- The feed's tables. Truth: accounts, follows, follow_requests, blocks, mutes, posts. Work in progress: fan_outs with
-- fan_out_batches. Derived, to be rebuilt at any time: timeline with readers. Times are unix milliseconds; ids of posts
-- are milliseconds << 20 | sequence.

-- A million ids a millisecond; it cycles because the time in front makes the id grow.
create sequence {{schema}}.post_sequence minvalue 0 maxvalue 1048575 cycle;
-- Tells one follow from a later one of the same pair.
create sequence {{schema}}.follow_generations;
-- Tells one build of a timeline from the next.
create sequence {{schema}}.timeline_tokens;

create table {{schema}}.accounts (
  number bigint generated always as identity primary key,
  id text collate "C" not null unique,
  created_at bigint not null,
  approves_followers boolean not null default false,
  -- Set: hidden from every read at once; the rows go in steps.
  erased_at bigint
);
create index accounts_erased on {{schema}}.accounts (number) where erased_at is not null;

-- One row an account. Whoever changes what the account follows, or its timeline as a whole, locks this row first and
-- reads in a later statement.
create table {{schema}}.readers (
  account bigint primary key,
  -- none: pulled, to be built; building: entries are taken, reads are pulled; live; pull: follows too many for a timeline.
  state text not null default 'none' check (state in ('none', 'building', 'live', 'pull')),
  -- Nothing at or below this post id is known to be in the timeline.
  floor bigint not null default 0,
  -- The timeline holds an entry -token as its marker: without it the entries have been lost.
  token bigint not null default 0,
  -- Of a list outside: how often it had been filled when that was noted here. A window of before is not believed.
  list_version bigint not null default 0,
  seen_at bigint not null default 0
) with (fillfactor = 80);

-- How an author's posts reach followers; no row means push, never switched, no follower counted. The count is in no index:
-- an update of it then touches none.
create table {{schema}}.authors (
  account bigint primary key,
  mode text not null default 'push' check (mode in ('push', 'pull')),
  -- Posts below may be in no timeline and are merged at read; the largest bigint in pull mode.
  pushed_since bigint not null default 0,
  followers bigint not null default 0,
  -- The round of housekeeping that numbered the author among the merged ones; until then the largest bigint.
  merge_number bigint not null default 9223372036854775807
) with (fillfactor = 80);
create index authors_merged on {{schema}}.authors (account, pushed_since) where pushed_since > 0;
create index authors_by_merge_number on {{schema}}.authors (merge_number) include (account, pushed_since)
  where pushed_since > 0;
create index authors_pushed_since on {{schema}}.authors (pushed_since) where pushed_since > 0;
create index authors_pulled on {{schema}}.authors (account) where mode = 'pull';

-- Changes of follower counts, not yet added to authors.followers: a counter row that every follow updates would be a
-- queue of its own.
create table {{schema}}.follower_deltas (
  number bigint generated always as identity primary key,
  account bigint not null,
  delta integer not null
);
create index follower_deltas_by_account on {{schema}}.follower_deltas (account) include (delta);

create table {{schema}}.follows (
  follower bigint not null,
  followee bigint not null,
  generation bigint not null default nextval('{{schema}}.follow_generations'),
  created_at bigint not null,
  -- The timeline does not have this followee's posts yet: merged at read.
  pending boolean not null default false,
  -- Set: no longer followed, but public posts up to this id stay in the home.
  kept_until bigint,
  primary key (follower, followee)
) with (fillfactor = 95);
create index follows_by_followee on {{schema}}.follows (followee, follower) where kept_until is null;
create index follows_kept on {{schema}}.follows (followee, kept_until, follower) where kept_until is not null;
create index follows_pending on {{schema}}.follows (follower, followee) where pending;

-- Which merged authors a reader with a timeline follows or is, of those numbered up to `upto`: every one, and perhaps some who are
-- followed no more. No row: nothing is known. Whoever writes a follow of a merged author deletes the row of the follower
-- with it; a row is written by who holds the reader.
create table {{schema}}.merged_followees (
  reader bigint primary key,
  upto bigint not null,
  -- Null: more than a list is good for.
  authors bigint[]
);

create table {{schema}}.follow_requests (
  follower bigint not null,
  followee bigint not null,
  created_at bigint not null,
  primary key (followee, follower)
);
create index follow_requests_by_follower on {{schema}}.follow_requests (follower);

create table {{schema}}.blocks (
  blocker bigint not null,
  blocked bigint not null,
  created_at bigint not null,
  primary key (blocker, blocked)
);
create index blocks_by_blocked on {{schema}}.blocks (blocked, blocker);

create table {{schema}}.mutes (
  muter bigint not null,
  muted bigint not null,
  created_at bigint not null,
  primary key (muter, muted)
);
create index mutes_by_muted on {{schema}}.mutes (muted);

create table {{schema}}.posts (
  id bigint primary key,
  author bigint not null,
  key text collate "C",
  body text,
  data text,
  visibility text not null check (visibility in ('public', 'followers')),
  repost_of bigint,
  -- Some post is or was a repost of this one.
  has_reposts boolean not null default false,
  mode text not null check (mode in ('push', 'pull')),
  created_at bigint not null,
  edited_at bigint,
  deleted_at bigint
) with (fillfactor = 95);
create unique index posts_by_key on {{schema}}.posts (author, key) where key is not null;
create index posts_by_author on {{schema}}.posts (author, id desc) where deleted_at is null;
create unique index posts_reposts_by_author on {{schema}}.posts (author, repost_of)
  where repost_of is not null and deleted_at is null;
create index posts_reposts on {{schema}}.posts (repost_of, id) where repost_of is not null and deleted_at is null;
create index posts_deleted on {{schema}}.posts (deleted_at) where deleted_at is not null;

create table {{schema}}.timeline (
  reader bigint not null,
  -- The post's id; one negative entry is the marker of the build.
  post bigint not null,
  primary key (reader, post)
);

-- One row a post whose followers do not all have it yet; the row goes when the last batch is done.
create table {{schema}}.fan_outs (
  post bigint primary key,
  author bigint not null,
  lane text not null check (lane in ('small', 'big')),
  published_at bigint not null,
  -- Set when the ranges are stored: how many there were.
  batches integer
);
-- The post is beside the key, not in it: an empty table's statistics would have posts looked up here, all of it each time.
create index fan_outs_by_author on {{schema}}.fan_outs (author) include (post);
create index fan_outs_by_age on {{schema}}.fan_outs (lane, published_at);

-- A range of followers (from, until] by account number; the row goes with its entries, in one transaction.
create table {{schema}}.fan_out_batches (
  post bigint not null,
  batch integer not null,
  follower_from bigint not null,
  follower_until bigint not null,
  primary key (post, batch)
);

create table {{schema}}.rankings (
  number bigint generated always as identity primary key,
  reader bigint not null,
  posts bigint[] not null,
  created_at bigint not null
);
create index rankings_by_reader on {{schema}}.rankings (reader, number);

-- Places where work that walks all rows in steps has come to.
create table {{schema}}.progress (
  name text primary key,
  position bigint not null
);
-- Up to which number authors have been numbered; who numbers them holds this row.
insert into {{schema}}.progress (name, position) values ('merged-authors', 0);
