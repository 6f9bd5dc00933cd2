-- The tables of the queue. What a dequeue touches holds live messages only and has as few indexes as it can do with:
-- every index is written again at every change of state. Times are unix milliseconds.
--
-- States: 0 invisible, 1 pending, 2 running, 3 completed, 4 canceled, 5 errored.
-- How a lease ended: 1 complete, 2 fail, 3 release, 4 cancel, 5 expiry.

create table {{schema}}.queues (
  no integer generated always as identity primary key,
  name text collate "C" not null unique,
  exclusive_key text,
  lease_ms bigint not null default 30000,
  delay_ms bigint not null default 0,
  attempts_max integer not null default 3,
  completed_ms bigint not null default 86400000,
  canceled_ms bigint not null default 86400000,
  errored_ms bigint not null default 604800000,
  enqueue_blocked boolean not null default false,
  dequeue_blocked boolean not null default false,
  rate_count integer,
  rate_ms bigint,
  history text not null default 'batch'
);

create sequence {{schema}}.seq;

-- Live messages. `seq` is the order of enqueue and names a message in tokens, history and events. `due_at` is the moment
-- at which the message moves by itself: visible_at while invisible, the end of the lease while running. `lease` and
-- `lease_end` stay after the lease, so that its holder gets the same answer again.
create table {{schema}}.messages (
  seq bigint primary key,
  priority bigint not null,
  due_at bigint,
  visible_at bigint not null,
  enqueued_at bigint not null,
  started_at bigint,
  version bigint not null default 1,
  lease_ms bigint,
  queue_no integer not null,
  attempts integer not null default 0,
  attempts_max integer not null,
  state smallint not null,
  lease_end smallint,
  unique_while_live boolean not null,
  id text collate "C" not null,
  lease text collate "C",
  value text collate "C",
  payload text not null,
  metadata jsonb,
  trace text,
  worker text,
  error text
) with (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000,
  toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 5000, toast.autovacuum_vacuum_cost_delay = 0
);

-- The order of dequeue.
create index messages_order on {{schema}}.messages (queue_no, priority, seq) where state = 1;
-- What moves by itself, and the lists of invisible and running messages.
create index messages_due on {{schema}}.messages (queue_no, due_at, seq) where due_at is not null;
-- A repeated request finds its leases; a lease begins with the request's id. `is not null` keeps it from those who look for a
-- running message by something else: to a planner that believes that nothing runs, all of a small index looks cheap.
create index messages_lease on {{schema}}.messages (lease) where state = 2 and lease is not null;
-- The waiting messages of an exclusivity value, best first.
create index messages_value on {{schema}}.messages (queue_no, value, priority, seq) where state = 1 and value is not null;

-- The running message of an exclusivity value.
create index messages_value_running on {{schema}}.messages (queue_no, value) where state = 2 and value is not null;

-- Which ids a queue knows: the unique index that decides whether a message is new. A check against live and finished
-- messages instead would let two enqueues at once both find nothing.
create table {{schema}}.ids (
  seq bigint not null,
  payload_hash bigint not null,
  queue_no integer not null,
  id text collate "C" not null,
  primary key (queue_no, id)
) with (
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_vacuum_insert_scale_factor = 0.2
);

-- One row for each pending message and metadata pair: linear in the pairs, in the order of dequeue. The hash may
-- collide; whoever walks it compares the message's metadata.
create table {{schema}}.pairs (
  queue_no integer not null,
  pair bigint not null,
  priority bigint not null,
  seq bigint not null,
  primary key (queue_no, pair, priority, seq)
) with (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0
);

-- The values of exclusive queues that have waiting or running messages, derived from `messages`. A value is idle while
-- nothing of it runs, and stands in the order of dequeue by its best waiting message: a dequeue walks idle values only,
-- so it takes the same time with any number of blocked messages in front.
create table {{schema}}.exclusive_values (
  queue_no integer not null,
  value text collate "C" not null,
  running_seq bigint,
  head_priority bigint,
  head_seq bigint,
  primary key (queue_no, value)
) with (
  fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);

create index exclusive_values_idle on {{schema}}.exclusive_values (queue_no, head_priority, head_seq)
  where running_seq is null and head_seq is not null;

-- Values whose messages have changed: written by whoever changes them, in the same transaction and without locking the
-- value, so that neither a caller's open transaction nor a completion ever waits for another. Dequeue takes them in.
create table {{schema}}.value_changes (
  queue_no integer not null,
  value text collate "C" not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

create index value_changes_queue on {{schema}}.value_changes (queue_no);

-- Whose turn it is to take changes in: a row to lock for each exclusive queue, and how far the check of values has come.
create table {{schema}}.value_turns (
  queue_no integer primary key,
  checked text collate "C" not null default '',
  repaired bigint not null default 0
);

-- Where a queue's pending messages begin and since when nothing was due: there while its dequeues meet many entries of
-- rows that are gone and that vacuum has not taken away, because it comes once a minute or because an old transaction
-- holds it back. Refreshed once a second by a dequeue that goes without.
create table {{schema}}.marks (
  queue_no integer primary key,
  priority bigint not null,
  seq bigint not null,
  due_at bigint not null,
  at bigint not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Messages that became pending below the mark.
create table {{schema}}.dips (
  queue_no integer not null,
  priority bigint not null,
  seq bigint not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

create index dips_order on {{schema}}.dips (queue_no, priority, seq);

-- What a queue with a rate limit has handed out lately.
create table {{schema}}.rate_grants (
  queue_no integer not null,
  at bigint not null,
  count integer not null
);

create index rate_grants_at on {{schema}}.rate_grants (queue_no, at);

-- Terminal messages, whole partitions of which are dropped when their retention has passed.
create table {{schema}}.finished (
  seq bigint not null,
  priority bigint not null,
  visible_at bigint not null,
  enqueued_at bigint not null,
  started_at bigint,
  finished_at bigint not null,
  expires_at bigint not null,
  version bigint not null,
  lease_ms bigint,
  queue_no integer not null,
  attempts integer not null,
  attempts_max integer not null,
  state smallint not null,
  lease_end smallint,
  unique_while_live boolean not null,
  id text collate "C" not null,
  lease text collate "C",
  value text collate "C",
  payload text not null,
  metadata jsonb,
  trace text,
  worker text,
  error text,
  result text
) partition by range (expires_at);

create table {{schema}}.finished_default partition of {{schema}}.finished default;
create index finished_seq on {{schema}}.finished (queue_no, state, seq);
create index finished_default_expires on {{schema}}.finished_default (expires_at);

-- The tokens of ended messages that are not in `finished`: their holders get the same answer for 60 s. A ring of minutes,
-- of which the one after next is emptied whole.
create table {{schema}}.departed (
  seq bigint not null,
  ended_at bigint not null,
  version bigint not null,
  minute smallint not null,
  state smallint not null,
  lease_end smallint not null,
  lease text collate "C" not null
) partition by list (minute);

create table {{schema}}.departed_0 partition of {{schema}}.departed for values in (0);
create table {{schema}}.departed_1 partition of {{schema}}.departed for values in (1);
create table {{schema}}.departed_2 partition of {{schema}}.departed for values in (2);
create table {{schema}}.departed_3 partition of {{schema}}.departed for values in (3);
create index departed_seq on {{schema}}.departed (seq);

-- Changes, one row a batch (or a message, where the queue keeps history so). `versions` and `attempts` run beside `seqs`;
-- a null means version 1 and attempt 0 for all. Most batches are alike from the first to the last message: then `seqs` is
-- null, the batch is all of first_seq to last_seq, and the other two hold one element. (With arrays of a whole batch,
-- compressing and moving them out of line was a fifth of what a dequeue cost.)
create table {{schema}}.events (
  queue_no integer not null,
  from_state smallint,
  to_state smallint not null,
  at bigint not null,
  first_seq bigint not null,
  last_seq bigint not null,
  seqs bigint[],
  versions bigint[],
  attempts integer[]
) partition by range (at);

create table {{schema}}.events_default partition of {{schema}}.events default;
create index events_seq on {{schema}}.events (queue_no, last_seq, first_seq);

-- Depth is the sum of what is settled and of what has been added since: adding locks nobody. Housekeeping folds the
-- second into the first. The empty pair counts everything.
create table {{schema}}.depth (
  queue_no integer not null,
  pair text collate "C" not null,
  invisible bigint not null,
  pending bigint not null,
  running bigint not null,
  primary key (queue_no, pair)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

create table {{schema}}.depth_changes (
  queue_no integer not null,
  invisible integer not null,
  pending integer not null,
  running integer not null,
  pair text collate "C" not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

create index depth_changes_pair on {{schema}}.depth_changes (queue_no, pair);

-- Recurring messages, by name.
create table {{schema}}.recurring (
  name text collate "C" primary key,
  queue text not null,
  cron text not null,
  time_zone text not null,
  message text not null,
  next_at bigint not null
);

create function {{schema}}.now_ms(p_now bigint) returns bigint language sql stable
  as $$ select coalesce(p_now, floor(extract(epoch from statement_timestamp()) * 1000)::bigint) $$;

-- A metadata pair as one text that no other pair gives.
create function {{schema}}.pair_of(p_key text, p_value text) returns text language sql immutable
  as $$ select length(p_key) || ':' || p_key || p_value $$;
