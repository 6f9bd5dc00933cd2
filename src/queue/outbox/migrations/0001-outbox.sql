-- Messages on their way to another store. `number` is their order: whoever begins after another's commit gets a higher one,
-- and sees the other's rows wherever its own are seen.
create table {{schema}}.outbox_message (
  number bigint generated always as identity primary key,
  queue text not null,
  -- JSON of the message as the store takes it, as text: it comes back byte for byte.
  message text not null,
  created_at bigint not null
);
create index outbox_message_queue on {{schema}}.outbox_message (queue, number);

-- What the store has refused, with its reason: for people to look at.
create table {{schema}}.outbox_refused (
  number bigint primary key,
  queue text not null,
  message text not null,
  created_at bigint not null,
  refused_at bigint not null,
  error text not null
);

-- Who relays a queue now. A row and a time, not a session lock: poolers and failovers keep rows.
create table {{schema}}.outbox_relay (
  queue text primary key,
  holder text not null,
  held_until bigint not null
);
