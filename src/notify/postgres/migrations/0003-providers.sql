-- What all workers know together of each provider: circuit breaker, pauses that it asked for, and the tokens of its rate.

-- The breaker is open until `open_until`; from then on one call a cool-down probes it, by whoever sets `probe_until`.
-- `general` and `reserved` are tokens; the reserved ones are for urgent kinds alone.
create table {{schema}}.providers (
  name text collate "C" primary key,
  window_at bigint not null default 0,
  window_calls integer not null default 0,
  window_errors integer not null default 0,
  unanswered integer not null default 0,
  open_until bigint,
  open_reason text,
  probe_until bigint,
  paused_until bigint,
  general double precision not null default 0,
  reserved double precision not null default 0,
  refilled_at bigint not null default 0
);
