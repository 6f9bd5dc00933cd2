/** What a worker is told: its options with their defaults, checked once and read-only from then on. */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { systemClock, type Clock } from '../../clock.js';
import { describeValue, invalidInput } from '../../errors.js';
import { silentLog, type Log } from '../../log.js';
import { noMetrics, type MetricsBackend } from '../../metrics.js';
import { resolveLanes, type Lane, type ResolvedLane } from '../lanes.js';
import type { JsonValue, LeasedMessage, NewMessage } from '../message.js';
import { limitsDefault } from '../options.js';
import { parseLeaseMs } from '../parse.js';
import { resolveRetry, type RetryOptions } from '../retry.js';
import type { QueueStore } from '../store.js';

export interface HandlerContext {
  /**
   * Fires when the lease is lost, the message is canceled, the time limit or the stop deadline passes; its reason is a
   * HeadgateError with the code `lease-lost`, `message-canceled`, `handler-time-limit` or `stopped`.
   */
  readonly signal: AbortSignal;
}

export interface MessageContext extends HandlerContext {
  /** Enqueues `message` in the same step that completes this one: both happen, or neither. */
  followUp(queue: string, message: NewMessage): void;
}

/** The value becomes the message's result; throwing fails it (see retry.ts for what an error may ask for). */
export type Handler = (
  message: LeasedMessage,
  context: MessageContext,
) => Promise<JsonValue | void> | JsonValue | void;

/**
 * Answers one result a message, in order; an Error in the place of a result fails that message alone. Answering nothing
 * completes all, throwing fails all.
 */
export type BatchHandler = (
  messages: readonly LeasedMessage[],
  context: HandlerContext,
) =>
  | Promise<readonly (JsonValue | Error | undefined)[] | void>
  | readonly (JsonValue | Error | undefined)[]
  | void;

export interface BatchOptions {
  /** Most messages in one call of the handler; a call takes one slot. */
  readonly sizeMax: number;
  readonly handler: BatchHandler;
}

/** A queue of this worker; shared slots are served in turn, in proportion to the weights. */
export interface WeightedQueue {
  readonly queue: string;
  /** Default: 1. */
  readonly weight?: number;
}

export interface PrefetchOptions {
  /** Work held in advance, in milliseconds at the present rate. Default and most: 100. 0: none. */
  readonly holdMs: number;
  /** Most messages held in advance. Default: 4,000. */
  readonly messagesMax: number;
}

export interface WorkerOptions {
  /** The queue to serve, as made by createQueue. */
  readonly queue: { readonly store: QueueStore };
  readonly queues: readonly (string | WeightedQueue)[];
  /** Called once a message. Either this or `batch`. */
  readonly handler?: Handler;
  /** Called with several messages at once. Either this or `handler`. */
  readonly batch?: BatchOptions;
  /** Handlers side by side. Default: 10. */
  readonly slots?: number;
  readonly lanes?: readonly Lane[];
  /** Lease of a message in milliseconds; extended while its handler runs. Default: 30,000. */
  readonly leaseMs?: number;
  readonly retry?: Partial<RetryOptions>;
  /** After this many milliseconds the signal fires; a handler that goes on for 5 s more is failed. Default: no limit. */
  readonly handlerMsMax?: number;
  /** Messages held in advance under load; false: none. Never on exclusive queues. */
  readonly prefetch?: Partial<PrefetchOptions> | false;
  /** UTF-8 bytes of a result's JSON. Default: 32,768. */
  readonly resultBytesMax?: number;
  /** UTF-8 bytes of a follow-up's payload. Default: 32,768. */
  readonly payloadBytesMax?: number;
  /** Names the worker in the store and the log. Default: host, process and a random part. */
  readonly name?: string;
  readonly log?: Log;
  readonly metrics?: MetricsBackend;
  readonly clock?: Clock;
  readonly random?: () => number;
}

export interface WorkerSettings {
  readonly name: string;
  readonly store: QueueStore;
  readonly queues: readonly Required<WeightedQueue>[];
  readonly handler: Handler | undefined;
  readonly batch: BatchOptions | undefined;
  /** Messages in one call of the handler. */
  readonly callSize: number;
  readonly slots: number;
  readonly lanes: readonly ResolvedLane[];
  readonly leaseMs: number;
  readonly retry: RetryOptions;
  readonly handlerMsMax: number | undefined;
  readonly prefetch: PrefetchOptions;
  readonly resultBytesMax: number;
  readonly payloadBytesMax: number;
  readonly log: Log;
  readonly metrics: MetricsBackend;
  readonly clock: Clock;
  readonly random: () => number;
}

const holdMsMost = 100;
const slotsMost = 10_000;
/** What setTimeout can wait for. */
const timerMsMost = 2_147_483_647;

export function resolveOptions(options: WorkerOptions): WorkerSettings {
  const slots = wholeNumber('slots', options.slots ?? 10, 1, slotsMost);
  const queues = resolveQueues(options.queues);
  if ((options.handler === undefined) === (options.batch === undefined)) {
    throw invalidInput('handler', options.handler, 'a function, or batch in its place');
  }
  for (const [field, handler] of [
    ['handler', options.handler],
    ['batch.handler', options.batch?.handler],
  ] as const) {
    if (handler !== undefined && typeof handler !== 'function')
      throw invalidInput(field, handler, 'a function');
  }
  if (options.handlerMsMax !== undefined) wholeNumber('handlerMsMax', options.handlerMsMax, 1, timerMsMost);
  return {
    name: options.name ?? `${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`,
    store: options.queue.store,
    queues,
    handler: options.handler,
    batch: options.batch,
    callSize:
      options.batch === undefined ? 1 : wholeNumber('batch.sizeMax', options.batch.sizeMax, 1, 10_000),
    slots,
    lanes: resolveLanes({ lanes: options.lanes ?? [], slots, queues: queues.map(({ queue }) => queue) }),
    leaseMs: parseLeaseMs(options.leaseMs ?? 30_000),
    retry: resolveRetry(options.retry),
    handlerMsMax: options.handlerMsMax,
    prefetch: resolvePrefetch(options.prefetch),
    resultBytesMax: bytes('resultBytesMax', options.resultBytesMax ?? limitsDefault.resultBytesMax),
    payloadBytesMax: bytes('payloadBytesMax', options.payloadBytesMax ?? limitsDefault.payloadBytesMax),
    log: options.log ?? silentLog,
    metrics: options.metrics ?? noMetrics,
    clock: options.clock ?? systemClock,
    random: options.random ?? Math.random,
  };
}

function resolveQueues(given: WorkerOptions['queues']): Required<WeightedQueue>[] {
  if (!Array.isArray(given) || given.length === 0) throw invalidInput('queues', given, 'at least one queue');
  const queues = (given as WorkerOptions['queues']).map((entry, index) => {
    const { queue, weight = 1 } = typeof entry === 'string' ? { queue: entry } : entry;
    if (typeof queue !== 'string' || queue === '')
      throw invalidInput(`queues[${index}]`, queue, 'the name of a queue');
    if (!Number.isFinite(weight) || weight <= 0) {
      throw invalidInput(`queues[${index}].weight`, weight, 'a number above 0');
    }
    return { queue, weight };
  });
  if (new Set(queues.map(({ queue }) => queue)).size < queues.length) {
    throw invalidInput(
      'queues',
      queues.map(({ queue }) => queue),
      'each queue once',
    );
  }
  return queues;
}

function resolvePrefetch(given: WorkerOptions['prefetch']): PrefetchOptions {
  if (given === false) return { holdMs: 0, messagesMax: 0 };
  return {
    holdMs: wholeNumber('prefetch.holdMs', given?.holdMs ?? holdMsMost, 0, holdMsMost),
    messagesMax: wholeNumber('prefetch.messagesMax', given?.messagesMax ?? 4_000, 0, 100_000),
  };
}

const bytes = (field: string, value: number): number => wholeNumber(field, value, 1, 16 * 1_048_576);

function wholeNumber(field: string, value: number, least: number, most: number): number {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return value;
  throw invalidInput(field, value, `a whole number from ${describeValue(least)} to ${describeValue(most)}`);
}
