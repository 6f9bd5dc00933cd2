/**
 * Shows once a second what is only worth seeing now and then: the slots in use by lane, and the lag of each queue and
 * lane, which is the age in seconds of its oldest pending message as the store counts it. One question a second in turn,
 * so that an idle worker stays quiet; nothing is asked when nobody counts.
 */
import type { Clock } from '../../clock.js';
import { noMetrics, type Metrics } from '../../metrics.js';
import { noLane, type ResolvedLane, type SlotLedger } from '../lanes.js';
import type { Metadata } from '../message.js';
import type { QueueStore } from '../store.js';
import type { CallGate } from './calls.js';
import type { WorkerMetric } from './metrics.js';
import type { WorkerSettings } from './options.js';

const everyMs = 1_000;
const labelCharactersMost = 100;

interface Question {
  readonly queue: string;
  readonly lane: string;
  readonly where: Metadata;
}

export class Gauges {
  readonly #store: Pick<QueueStore, 'oldest'>;
  readonly #clock: Clock;
  readonly #gate: CallGate;
  readonly #metrics: Metrics<WorkerMetric>;
  readonly #ledger: SlotLedger;
  readonly #lanes: readonly ResolvedLane[];
  readonly #queues: string;
  readonly #questions: readonly Question[];
  #timer: NodeJS.Timeout | undefined;
  #turn = 0;

  constructor(options: {
    readonly settings: WorkerSettings;
    readonly metrics: Metrics<WorkerMetric>;
    readonly gate: CallGate;
    readonly ledger: SlotLedger;
  }) {
    const { store, clock, queues, lanes, metrics } = options.settings;
    this.#store = store;
    this.#clock = clock;
    this.#gate = options.gate;
    this.#metrics = options.metrics;
    this.#ledger = options.ledger;
    this.#lanes = lanes;
    this.#queues = queues
      .map(({ queue }) => queue)
      .join(',')
      .slice(0, labelCharactersMost);
    this.#questions =
      metrics === noMetrics
        ? []
        : queues.flatMap(({ queue }) => [{ queue, lane: '', where: {} }, ...questionsOf(queue, lanes)]);
  }

  start(): void {
    if (this.#questions.length === 0) return;
    this.#timer = setInterval(() => {
      this.#showSlots();
      void this.#ask();
    }, everyMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #showSlots(): void {
    this.#metrics.set(
      'headgate_worker_slots_used',
      { queues: this.#queues, lane: '' },
      this.#ledger.used(noLane),
    );
    for (const [index, { name }] of this.#lanes.entries()) {
      this.#metrics.set(
        'headgate_worker_slots_used',
        { queues: this.#queues, lane: name },
        this.#ledger.used(index),
      );
    }
  }

  async #ask(): Promise<void> {
    const question = this.#questions[this.#turn % this.#questions.length];
    if (question === undefined || !this.#gate.mayCall()) return;
    this.#turn += 1;
    const { queue, lane, where } = question;
    const result = await this.#gate.run(() =>
      this.#store.oldest({ queue, where, now: this.#clock.storeNow() }),
    );
    if (result.ok)
      this.#metrics.set('headgate_worker_lag_seconds', { queue, lane }, (result.value?.ageMs ?? 0) / 1_000);
  }
}

/** A lane that is a whole queue has the lag of its queue. */
function questionsOf(queue: string, lanes: readonly ResolvedLane[]): Question[] {
  return lanes
    .filter((lane) => lane.pairs.length > 0 && (lane.queue === undefined || lane.queue === queue))
    .map((lane) => ({ queue, lane: lane.name, where: lane.where }));
}
