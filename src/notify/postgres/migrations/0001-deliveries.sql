-- Kinds, notifications and their deliveries. The delivery row is the truth: the queue's message is only a wake-up that
-- carries its id. Times are unix milliseconds.

-- What is promised about each kind, read by every worker. `changed_by`: 'code' or 'operator'; a start of the program
-- overwrites only what the code wrote.
create table {{schema}}.kinds (
  name text collate "C" primary key,
  delivery text not null check (delivery in ('at-least-once', 'at-most-once')),
  deadline_ms bigint not null,
  attempts_max integer not null check (attempts_max >= 1),
  retry_after_ms bigint not null,
  retry_after_max_ms bigint not null,
  priority text not null check (priority in ('urgent', 'normal', 'bulk')),
  floor integer not null,
  required boolean not null,
  secret boolean not null,
  change_provider boolean not null,
  key_kept_ms bigint not null,
  changed_at bigint not null,
  changed_by text not null
);

-- `content_hash` tells a repeat from a conflict; `salt` goes into it, and is erased with the content of secret kinds,
-- because the hash of a six-digit code is as good as the code.
create table {{schema}}.notifications (
  id text collate "C" primary key,
  user_id text collate "C" not null,
  kind text collate "C" not null,
  key text collate "C" not null,
  purpose text collate "C",
  origin text not null default 'door',
  salt text,
  content_hash text not null,
  created_at bigint not null,
  kept_until bigint not null,
  unique (user_id, kind, key)
);
create index notifications_kept on {{schema}}.notifications (kept_until);
create index notifications_purpose on {{schema}}.notifications (user_id, kind, purpose) where purpose is not null;

-- `attempt` numbers the calls and fences their answers; `attempts` counts those that may have reached a provider;
-- `declines` counts those that certainly did not, since the last that may have. `sweep_at` is when the sweep looks at a
-- row that has not ended: the end of its `sending`, its deadline, or some time after its wake-up was due. `route` names the queue and the providers that can reach the address. `pinned` is the
-- provider of the last attempt whose outcome nobody knows: another one would be outside that provider's own protection.
create table {{schema}}.deliveries (
  id text collate "C" primary key,
  notification text collate "C" not null references {{schema}}.notifications on delete cascade,
  user_id text collate "C" not null,
  kind text collate "C" not null,
  channel text not null,
  route text collate "C" not null,
  address text collate "C" not null,
  details text,
  state text not null default 'waiting',
  reason text,
  campaign text collate "C",
  attempts integer not null default 0,
  attempt integer not null default 0,
  declines integer not null default 0,
  provider text collate "C",
  pinned text collate "C",
  content text,
  message_id text collate "C",
  receipt text not null default 'none',
  cost double precision,
  run_after bigint not null,
  claimed_at bigint,
  sending_until bigint,
  expires_at bigint not null,
  created_at bigint not null,
  finished_at bigint,
  sweep_at bigint not null,
  unique (notification, channel, address)
);
-- Two indexes: what died while sending is settled within a second however much waits.
create index deliveries_sending on {{schema}}.deliveries (sweep_at) where state = 'sending';
create index deliveries_waiting on {{schema}}.deliveries (sweep_at) where state = 'waiting';
create index deliveries_open on {{schema}}.deliveries (user_id, kind) where state in ('waiting', 'sending');
create index deliveries_kind on {{schema}}.deliveries (kind, state);

-- Why a delivery is what it is, for people. Never holds content.
create table {{schema}}.history (
  seq bigint generated always as identity primary key,
  delivery text collate "C" not null,
  at bigint not null,
  event text not null,
  attempt integer,
  provider text,
  detail text
);
create index history_delivery on {{schema}}.history (delivery, seq);

-- Which delivery a provider's message id belongs to: every attempt that got one.
create table {{schema}}.provider_messages (
  provider text collate "C" not null,
  message_id text collate "C" not null,
  delivery text collate "C" not null,
  at bigint not null,
  primary key (provider, message_id)
);
create index provider_messages_delivery on {{schema}}.provider_messages (delivery);

-- Receipts as they came. Those without a delivery are matched when one turns up, within the window. `retire`: why the
-- address is not to be called any more; kept until the delivery, and with it the address, is known.
create table {{schema}}.receipts (
  seq bigint generated always as identity primary key,
  provider text collate "C" not null,
  message_id text collate "C",
  reference text collate "C",
  status text not null,
  cost double precision,
  detail text,
  retire text,
  delivery text collate "C",
  at bigint not null
);
create index receipts_unmatched on {{schema}}.receipts (provider, message_id) where delivery is null;
create index receipts_reference on {{schema}}.receipts (reference) where delivery is null;
create index receipts_at on {{schema}}.receipts (at);

-- Where a user can be reached.
create table {{schema}}.destinations (
  user_id text collate "C" not null,
  channel text not null,
  address text collate "C" not null,
  details text,
  registered_at bigint not null,
  primary key (user_id, channel, address)
);

-- Addresses that are not called any more: dead, bounced, complained or opted out. `registered_at` of a destination that
-- is later than `at` overrules.
create table {{schema}}.retired (
  channel text not null,
  address text collate "C" not null,
  reason text not null,
  at bigint not null,
  primary key (channel, address)
);

-- A user's wishes. Kind or channel '*' means all; the most specific row decides, default on.
create table {{schema}}.preferences (
  user_id text collate "C" not null,
  kind text collate "C" not null,
  channel text not null,
  enabled boolean not null,
  changed_at bigint not null,
  primary key (user_id, kind, channel)
);

-- `time_zone` by IANA name; quiet hours in local minutes of the day.
create table {{schema}}.users (
  user_id text collate "C" primary key,
  locale text,
  time_zone text,
  quiet_from integer,
  quiet_until integer,
  changed_at bigint not null
);
