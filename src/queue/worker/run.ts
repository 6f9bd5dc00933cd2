/**
 * One run of a worker from start to stop: joins the parts of its state machine and turns its wheel. Guarantees: all that
 * happens in one turn of the event loop goes to the store together, and after `end` nothing is left that could call back.
 */
import { groundError } from '../../errors.js';
import type { Metrics } from '../../metrics.js';
import { QueueCounters } from '../counters.js';
import { SlotLedger } from '../lanes.js';
import type { LeasedMessage } from '../message.js';
import { CallGate, ErrorLines } from './calls.js';
import { Fetcher, laneOfFetched } from './fetching.js';
import { Gauges } from './gauges.js';
import { Held } from './held.js';
import { Leases, lossError } from './leases.js';
import { metricsOf, type WorkerMetric } from './metrics.js';
import type { WorkerSettings } from './options.js';
import { Rate, WaitingRoom } from './prefetch.js';
import { Settler } from './settling.js';
import { Slots } from './slots.js';
import type { Source } from './sources.js';
import { Waiting } from './waiting.js';

/** A store that answers nothing for this long has lost the call. */
const callMsMax = 15_000;

export type RunPhase = 'running' | 'stopping' | 'ended';

export class Run {
  readonly settings: WorkerSettings;
  readonly room: WaitingRoom;
  readonly ledger: SlotLedger;
  readonly leases: Leases;
  readonly settler: Settler;
  readonly slots: Slots;
  readonly fetcher: Fetcher;
  readonly waiting: Waiting;
  readonly #rate: Rate;
  readonly #metrics: Metrics<WorkerMetric>;
  readonly #errors: ErrorLines;
  readonly #gauges: Gauges;
  readonly #configurationGate: CallGate;
  readonly #gates: CallGate[] = [];
  readonly #sources = new Map<string, Source>();
  #phase: RunPhase = 'running';
  #turn: NodeJS.Immediate | undefined;
  #overdueTimer: NodeJS.Timeout | undefined;
  #onIdle: (() => void) | undefined;

  constructor(settings: WorkerSettings) {
    const { store, clock, random, log, leaseMs } = settings;
    this.settings = settings;
    this.#metrics = metricsOf(settings.metrics);
    this.#errors = new ErrorLines({ log, clock, worker: settings.name });
    const wake = (): void => this.wake();
    const metrics = this.#metrics;
    const counters = new QueueCounters(settings.metrics);
    const rate = (this.#rate = new Rate(clock));
    this.room = new WaitingRoom(settings.lanes.length);
    const floors = settings.lanes.map(({ floor }) => floor);
    this.ledger = new SlotLedger(settings.slots, floors);
    this.leases = new Leases({
      store,
      leaseMs,
      clock,
      gate: this.#gate('extend', () => this.leases.tick(), Math.min(callMsMax, Math.max(1_000, leaseMs / 3))),
      onLost: (held, kind) => this.slots.lose(held, lossError(held, kind)),
    });
    this.settler = new Settler({
      store,
      clock,
      gate: this.#gate('settle', wake),
      leases: this.leases,
      log,
      metrics,
      counters,
      wake,
      onSettled: (queue, kind) => this.#settled(queue, kind),
    });
    const shared = { settings, ledger: this.ledger, settler: this.settler, rate, wake };
    this.slots = new Slots({ ...shared, waiting: this.room, leases: this.leases, metrics });
    this.fetcher = new Fetcher({
      ...shared,
      waiting: this.room,
      gate: this.#gate('dequeue', wake),
      counters,
      onMessages: (messages, fetch) => this.#arrived(messages, fetch),
    });
    for (const source of this.fetcher.sources) this.#sources.set(source.queue, source);
    this.waiting = new Waiting({
      store,
      clock,
      random,
      wake,
      sources: this.fetcher.sources,
      watchGate: this.#gate('watch', () => void this.waiting.watch()),
      pollGate: this.#gate('ready', wake),
    });
    this.#configurationGate = this.#gate('configuration', () => {});
    this.#gauges = new Gauges({
      settings,
      metrics,
      gate: this.#gate('oldest', () => {}),
      ledger: this.ledger,
    });
  }

  get phase(): RunPhase {
    return this.#phase;
  }

  start(): void {
    this.leases.start();
    this.waiting.start();
    this.#gauges.start();
    this.wake();
  }

  /** Turns the wheel once, after everything that is already on its way in this turn of the event loop. */
  wake(): void {
    if (this.#turn === undefined && this.#phase !== 'ended') this.#turn = setImmediate(() => this.#work());
  }

  /** No new messages from here on; what has not started goes back. */
  beginStop(): void {
    this.#phase = 'stopping';
    this.#gauges.stop();
    this.#handBack(() => true);
    this.wake();
  }

  /** Resolves when nothing is held, running or on its way. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle = resolve;
      this.wake();
    });
  }

  /** Tells every handler, and gives back what is still running with its attempt refunded. */
  releaseAll(): void {
    this.slots.abortAll(groundError('stopped', `worker "${this.settings.name}" is stopping`));
    for (const held of this.leases) {
      if (held.phase === 'running') this.settler.add({ kind: 'release', held, delayMs: 0 });
    }
    // Sent now: the deadline may leave no other turn of the event loop.
    this.settler.flush();
    this.slots.stop();
  }

  end(): void {
    this.#phase = 'ended';
    clearImmediate(this.#turn);
    clearTimeout(this.#overdueTimer);
    this.leases.stop();
    this.settler.stop();
    this.slots.stop();
    for (const gate of this.#gates) gate.close();
  }

  #work(): void {
    this.#turn = undefined;
    if (this.#phase === 'running') {
      this.slots.startWhatFits();
      this.fetcher.plan();
    } else {
      this.fetcher.resume();
    }
    this.settler.flush();
    this.#watchRoom();
    if (this.slots.running + this.settler.size + this.fetcher.open === 0) this.#onIdle?.();
  }

  #arrived(
    messages: readonly LeasedMessage[],
    fetch: { readonly lane: number; readonly sentAtMs: number },
  ): void {
    if (this.#phase === 'ended') return;
    if (messages.length > 0 && this.slots.running + this.room.size === 0) this.#rate.begin();
    const fetchedAtMs = this.settings.clock.monotonicMs();
    for (const message of messages) {
      const lane = laneOfFetched(this.settings, fetch.lane, message);
      const held = new Held({ message, lane, leasedAtMs: fetch.sentAtMs, fetchedAtMs });
      this.leases.add(held);
      this.room.add(held);
    }
    if (this.#phase === 'stopping') {
      this.#handBack(() => true);
      return;
    }
    this.fetcher.planAhead();
    this.slots.startWhatFits();
    this.#handBack(({ message }) => {
      if (message.attempts < message.attemptsMax) return false;
      this.#sources.get(message.queue)?.gaveLastAttempt(this.settings.clock);
      return true;
    });
    for (const queue of new Set(messages.map(({ queue }) => queue))) void this.#learnType(queue);
  }

  /** Gives back, with the attempt refunded, what has not started and `leaves`. */
  #handBack(leaves: (held: Held) => boolean): void {
    if (this.room.size === 0) return;
    for (const held of this.room.takeIf(leaves)) {
      if (held.phase !== 'waiting') continue;
      this.#metrics.add('headgate_worker_handed_back_total', { queue: held.message.queue });
      this.settler.add({ kind: 'release', held, delayMs: 0 });
    }
  }

  /** What was fetched in advance and did not start in twice the time it was meant for goes back. */
  #watchRoom(): void {
    if (this.room.size === 0 || this.#overdueTimer !== undefined) return;
    const { clock, prefetch } = this.settings;
    this.#overdueTimer = setTimeout(
      () => {
        this.#overdueTimer = undefined;
        const beforeMs = clock.monotonicMs() - 2 * prefetch.holdMs;
        this.#handBack((held) => held.fetchedAtMs < beforeMs);
        this.#watchRoom();
      },
      Math.max(10, prefetch.holdMs),
    );
  }

  /** A completion on an exclusive queue frees its value, and a message that goes back can be dequeued again. */
  #settled(queue: string, kind: 'complete' | 'fail' | 'release'): void {
    const source = this.#sources.get(queue);
    if (this.#phase === 'running' && (kind !== 'complete' || source?.exclusive !== false)) source?.hint();
  }

  /** Messages are fetched in advance only once the store has said that the queue is not exclusive. */
  async #learnType(queue: string): Promise<void> {
    const source = this.#sources.get(queue);
    if (source === undefined || !source.asksType(this.settings.clock)) return;
    const result = await this.#configurationGate.run(() => this.settings.store.configuration(queue));
    if (result.ok) source.exclusive = result.value.type.kind === 'exclusive';
  }

  #gate(operation: string, onReady: () => void, msMax = callMsMax): CallGate {
    const { clock, random } = this.settings;
    const gate = new CallGate({
      operation,
      callMsMax: msMax,
      clock,
      random,
      errors: this.#errors,
      metrics: this.#metrics,
      onReady: () => {
        if (this.#phase !== 'ended') onReady();
      },
    });
    this.#gates.push(gate);
    return gate;
  }
}
