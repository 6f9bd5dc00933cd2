/**
 * The relay: moves messages from the outbox to a store. Guarantees: at least once, and once as long as the store still knows the id; in
 * the order of the outbox, one relay a queue at a time, with takeover when one ends or falls silent; a message that the store refuses
 * goes aside with its error and stops nothing; a store that is away stops nothing but itself.
 */
import { type Database, quoteSchema } from '../../database/index.js';
import { invalidInput } from '../../errors.js';
import { randomToken } from '../../ids.js';
import type { Component } from '../../lifecycle.js';
import { type Log, silentLog } from '../../log.js';
import { type Metrics, type MetricsBackend, noMetrics } from '../../metrics.js';
import type { EnqueueOutcome, MessageToStore, QueueStore } from '../store.js';
import { outboxMetrics } from './metrics.js';
import { outboxSchemaDefault } from './outbox.js';
import { type OutboxLag, type OutboxRow, OutboxStatements } from './statements.js';

export interface RelayOptions {
  readonly database: Database;
  readonly store: Pick<QueueStore, 'enqueue' | 'configuration'>;
  /** Default `headgate_outbox`. */
  readonly schema?: string;
  /** How often it looks without being told, in milliseconds. Default 500. */
  readonly pollMs?: number;
  /** Messages of one step. Default 500. */
  readonly batchMax?: number;
  /** After this long without a sign another relay takes a queue over, in milliseconds. Default 5,000. */
  readonly takeoverMs?: number;
  readonly log?: Log;
  readonly metrics?: MetricsBackend;
}

export interface Relay extends Component {
  /** What waits, by queue. */
  lag(): Promise<OutboxLag[]>;
}

/** An id must be known to the store for longer than any outage in which a message may have been moved and not removed. */
const retentionMsMin = 86_400_000;

export function createRelay(options: RelayOptions): Relay {
  return new OutboxRelay(options);
}

class OutboxRelay implements Relay {
  readonly #options: RelayOptions;
  readonly #schema: string;
  readonly #statements: OutboxStatements;
  readonly #log: Log;
  readonly #metrics: Metrics<keyof typeof outboxMetrics>;
  readonly #holder = randomToken();
  readonly #pollMs: number;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> | undefined;
  #unlisten: (() => Promise<void>) | undefined;
  #active = false;
  #told = false;

  constructor(options: RelayOptions) {
    this.#options = options;
    this.#schema = options.schema ?? outboxSchemaDefault;
    this.#statements = new OutboxStatements(options.database, quoteSchema(this.#schema));
    this.#log = options.log ?? silentLog;
    this.#metrics = (options.metrics ?? noMetrics)(outboxMetrics);
    this.#pollMs = positive('pollMs', options.pollMs, 500);
    positive('batchMax', options.batchMax, 500);
    positive('takeoverMs', options.takeoverMs, 5_000);
  }

  async start(): Promise<void> {
    if (this.#active) return;
    this.#active = true;
    try {
      this.#unlisten = await this.#options.database.listen(this.#schema, () => this.#wake());
    } catch (error) {
      this.#log.warn({ error }, 'the relay of the outbox cannot listen; it polls');
    }
    this.#schedule(0);
  }

  /** Waits for the step on its way, and lets others take over at once. */
  async stop(): Promise<void> {
    if (!this.#active) return;
    this.#active = false;
    clearTimeout(this.#timer);
    await this.#round;
    await this.#unlisten?.().catch(() => {});
    await this.#statements.yieldAll(this.#holder).catch(() => {});
  }

  lag(): Promise<OutboxLag[]> {
    return this.#statements.lag();
  }

  #wake(): void {
    this.#told = true;
    if (this.#active && !this.#round) this.#schedule(0);
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#told = false;
      this.#round = this.#relayAll().finally(() => {
        this.#round = undefined;
        if (this.#active) this.#schedule(this.#told ? 0 : this.#pollMs);
      });
    }, ms);
  }

  async #relayAll(): Promise<void> {
    try {
      const queues = await this.#statements.queues();
      await Promise.all(queues.map((queue) => this.#relayQueue(queue)));
      for (const { queue, oldestMs } of await this.#statements.lag())
        this.#metrics.set('headgate_outbox_lag_seconds', { queue }, oldestMs / 1_000);
    } catch (error) {
      this.#failed(error, 'a round of the outbox relay failed; it is repeated');
    }
  }

  /** Until nothing is left, another relay has the queue, or something fails. */
  async #relayQueue(queue: string): Promise<void> {
    const { batchMax = 500, takeoverMs = 5_000 } = this.#options;
    try {
      if (!(await this.#remembersIds(queue))) return;
      while (this.#active && (await this.#statements.claim(queue, this.#holder, takeoverMs))) {
        const rows = await this.#statements.read(queue, batchMax);
        if (rows.length === 0) return this.#metrics.set('headgate_outbox_lag_seconds', { queue }, 0);
        await this.#move(queue, rows);
      }
    } catch (error) {
      this.#failed(error, `messages of the outbox for "${queue}" wait: the store did not take them`);
    }
  }

  /** What has been moved is removed only afterwards: after a crash in between the store is asked again, and knows the ids. */
  async #move(queue: string, rows: readonly OutboxRow[]): Promise<void> {
    const messages = rows.map(asEnqueuedThen);
    const outcomes = await this.#options.store.enqueue({ queue, messages, now: undefined });
    const moved: string[] = [];
    for (const [index, outcome] of outcomes.entries()) {
      const { number } = rows[index]!;
      const label = labelOf(outcome);
      if (label === 'blocked') break;
      if (label === 'created' || label === 'known') moved.push(number);
      else await this.#setAside(queue, number, outcome);
      this.#metrics.add('headgate_outbox_relayed_total', { queue, outcome: label });
    }
    await this.#statements.remove(moved);
    if (outcomes.some((outcome) => labelOf(outcome) === 'blocked'))
      throw new Error('the queue takes no messages now');
  }

  async #setAside(queue: string, number: string, outcome: EnqueueOutcome): Promise<void> {
    const reason =
      outcome.kind === 'refused' ? outcome.error.message : 'the id is known with another payload';
    this.#log.error({ queue, message: outcome.id, reason }, 'the store refused a message of the outbox');
    await this.#statements.refuse(number, reason);
  }

  async #remembersIds(queue: string): Promise<boolean> {
    const { retentionMs } = await this.#options.store.configuration(queue);
    const shortest = Math.min(...Object.values(retentionMs));
    if (shortest >= retentionMsMin) return true;
    const text =
      'the queue forgets ids too soon for an outbox: expected a retention of at least 24 h for every end';
    this.#log.error({ queue, retentionMs: shortest }, text);
    return false;
  }

  #failed(error: unknown, text: string): void {
    this.#metrics.add('headgate_outbox_failures_total', {});
    this.#log.warn({ error }, text);
  }
}

/** As if it had been enqueued when it was written. JSON leaves out what is undefined; the port names it. */
function asEnqueuedThen({ message, createdAt, ageMs }: OutboxRow): MessageToStore {
  const { id, payload, metadata, priority, delayMs, attemptsMax, leaseMs, uniqueWhileLive, trace } = message;
  return {
    id,
    payload,
    metadata,
    priority: priority ?? createdAt,
    delayMs: delayMs === undefined ? undefined : Math.max(0, delayMs - ageMs),
    attemptsMax,
    leaseMs,
    uniqueWhileLive,
    trace,
  };
}

function labelOf(outcome: EnqueueOutcome): 'created' | 'known' | 'conflict' | 'refused' | 'blocked' {
  if (outcome.kind === 'enqueued') return outcome.created ? 'created' : 'known';
  if (outcome.kind === 'conflict') return 'conflict';
  return outcome.error.code === 'enqueue-blocked' ? 'blocked' : 'refused';
}

function positive(field: string, value: number | undefined, otherwise: number): number {
  if (value === undefined) return otherwise;
  if (!Number.isSafeInteger(value) || value < 1)
    throw invalidInput(field, value, 'a whole number of at least 1');
  return value;
}
