/**
 * Starts handlers in free slots and reads how they end. Guarantees: never more handlers side by side than slots (those
 * whose slot was taken from them after `overdueMs` are counted and logged), an outcome counts once, and a message that
 * the store has taken away is not settled by its handler.
 */
import type { Clock } from '../../clock.js';
import type { HeadgateError } from '../../errors.js';
import type { Log } from '../../log.js';
import type { Metrics } from '../../metrics.js';
import type { SlotLedger } from '../lanes.js';
import { workerError } from './errors.js';
import { failed, handle } from './handling.js';
import { Execution, type Held } from './held.js';
import type { Leases } from './leases.js';
import type { WorkerMetric } from './metrics.js';
import type { WorkerSettings } from './options.js';
import type { Rate, WaitingRoom } from './prefetch.js';
import type { Settlement, Settler } from './settling.js';

/** How long a handler may go on after its signal has fired before its slot is used again. */
const overdueMs = 5_000;

export interface SlotsOptions {
  readonly settings: WorkerSettings;
  readonly ledger: SlotLedger;
  readonly waiting: WaitingRoom;
  readonly leases: Leases;
  readonly settler: Settler;
  readonly rate: Rate;
  readonly metrics: Metrics<WorkerMetric>;
  readonly wake: () => void;
}

export class Slots {
  readonly #options: SlotsOptions;
  readonly #running = new Set<Execution>();
  readonly #clock: Clock;
  readonly #log: Log;
  #starting = false;

  constructor(options: SlotsOptions) {
    this.#options = options;
    this.#clock = options.settings.clock;
    this.#log = options.settings.log;
  }

  /** Calls of the handler that have not ended and whose slot is taken. */
  get running(): number {
    return this.#running.size;
  }

  /** Starts what waits, as far as slots are free. A handler that ends at once makes room for the next in this loop. */
  startWhatFits(): void {
    if (this.#starting) return;
    this.#starting = true;
    const { waiting, ledger, settings } = this.#options;
    for (let lane = waiting.nextLane(ledger); lane !== undefined; lane = waiting.nextLane(ledger)) {
      const helds = waiting.take(lane, settings.callSize).filter((held) => held.phase === 'waiting');
      if (helds.length > 0) this.#start(helds, lane);
    }
    this.#starting = false;
  }

  /** The store has said that a message is no longer ours: its handler is told and its outcome ignored. */
  lose(held: Held, reason: HeadgateError): void {
    if (held.phase === 'settling') return;
    held.phase = 'ended';
    this.#options.leases.remove(held);
    const { execution } = held;
    if (execution === undefined || execution.helds.some((other) => other.phase === 'running')) return;
    this.#abort(execution, reason);
  }

  abortAll(reason: HeadgateError): void {
    for (const execution of this.#running) execution.abort(reason);
  }

  /** Ends timers and forgets handlers that still run. */
  stop(): void {
    for (const execution of this.#running) clearTimeout(execution.timer);
    this.#running.clear();
  }

  #start(helds: readonly Held[], lane: number): void {
    const { settings, ledger } = this.#options;
    const execution = new Execution({ helds, lane, startedAtMs: this.#clock.monotonicMs() });
    for (const held of helds) {
      held.phase = 'running';
      held.execution = execution;
    }
    ledger.take(lane);
    this.#running.add(execution);
    if (settings.handlerMsMax !== undefined) {
      execution.timer = setTimeout(
        () => this.#abort(execution, timeLimitError(settings)),
        settings.handlerMsMax,
      );
    }
    handle(execution, settings, (settlements) => this.#ended(execution, settlements));
  }

  #ended(execution: Execution, settlements: readonly Settlement[]): void {
    const { settler, leases, rate, metrics } = this.#options;
    const seconds = (this.#clock.monotonicMs() - execution.startedAtMs) / 1_000;
    metrics.observe('headgate_worker_handler_seconds', { queue: execution.queue }, seconds);
    rate.add(execution.helds.length);
    for (const settlement of settlements) {
      if (settlement.held.phase !== 'running') continue;
      leases.checkLapsed(settlement.held);
      settler.add(settlement);
    }
    this.#freeSlot(execution);
    this.startWhatFits();
  }

  #freeSlot(execution: Execution): void {
    clearTimeout(execution.timer);
    if (!this.#running.delete(execution)) return;
    this.#options.ledger.give(execution.lane);
    this.#options.wake();
  }

  #abort(execution: Execution, reason: HeadgateError): void {
    if (!execution.abort(reason)) return;
    clearTimeout(execution.timer);
    if (this.#running.has(execution)) execution.timer = setTimeout(() => this.#overdue(execution), overdueMs);
  }

  /** The handler ignores its signal. Its messages fail, as far as they are still ours, and its slot is used again. */
  #overdue(execution: Execution): void {
    const { settler, settings, metrics } = this.#options;
    metrics.add('headgate_worker_overdue_handlers_total', {});
    const messages = execution.helds.map(({ message }) => message.id);
    this.#log.warn(
      { worker: settings.name, queue: execution.queue, messages, reason: execution.reason?.code },
      `a handler went on for ${overdueMs} ms after its signal had fired; its slot is used again`,
    );
    for (const held of execution.helds) {
      if (held.phase === 'running') settler.add(failed(held, execution.reason, execution, settings));
    }
    this.#freeSlot(execution);
    this.startWhatFits();
  }
}

function timeLimitError(settings: WorkerSettings): HeadgateError {
  return workerError('handler-time-limit', `the handler ran for more than ${settings.handlerMsMax} ms`);
}
