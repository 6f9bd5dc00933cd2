-- What people see and steer: campaigns, digests, the in-app inbox.

-- `taken`: recipients read from the stream and accepted. `paused_ms`: how long it has stood still; deadlines move by it.
create table {{schema}}.campaigns (
  id text collate "C" primary key,
  kind text collate "C" not null,
  state text not null default 'running' check (state in ('running', 'paused', 'canceled', 'streamed')),
  taken bigint not null default 0,
  paused_at bigint,
  paused_ms bigint not null default 0,
  created_at bigint not null,
  changed_at bigint not null
);
create index deliveries_campaign on {{schema}}.deliveries (campaign, state) where campaign is not null;

-- At most one open digest a user, kind and key.
create table {{schema}}.digests (
  id text collate "C" primary key,
  user_id text collate "C" not null,
  kind text collate "C" not null,
  key text collate "C" not null,
  state text not null default 'open' check (state in ('open', 'closed')),
  opened_at bigint not null,
  closes_at bigint not null
);
create unique index digests_open on {{schema}}.digests (user_id, kind, key) where state = 'open';
create index digests_due on {{schema}}.digests (closes_at) where state = 'open';

-- `event` is the sender's own key of the event: it is in a digest of its user, kind and key once.
create table {{schema}}.digest_members (
  digest text collate "C" not null references {{schema}}.digests on delete cascade,
  event text collate "C" not null,
  data text not null,
  at bigint not null,
  seq bigint generated always as identity,
  primary key (digest, event)
);

create table {{schema}}.inbox (
  id text collate "C" primary key,
  user_id text collate "C" not null,
  kind text collate "C" not null,
  title text not null,
  body text not null,
  url text,
  created_at bigint not null,
  seen_at bigint,
  read_at bigint
);
create index inbox_user on {{schema}}.inbox (user_id, created_at desc, id desc);
create index inbox_unread on {{schema}}.inbox (user_id) where read_at is null;
