/** Calls the handler and turns what it returned or threw into settlements, one a message. Never throws or rejects. */
import { timeOrderedId } from '../../ids.js';
import type { JsonValue, NewMessage } from '../message.js';
import { parseErrorText, parseJson, parseMessage, parseQueueName } from '../parse.js';
import { failureOf } from '../retry.js';
import type { Execution, Held } from './held.js';
import type { BatchHandler, Handler, MessageContext, WorkerSettings } from './options.js';
import type { Settlement } from './settling.js';

/** Answers at once when the handler does; `onEnd` is called exactly once. */
export function handle(
  execution: Execution,
  settings: WorkerSettings,
  onEnd: (settlements: readonly Settlement[]) => void,
): void {
  let answer: unknown;
  try {
    answer =
      settings.batch === undefined ? single(execution, settings) : batch(execution, settings.batch.handler);
  } catch (error) {
    onEnd(failuresOf(error, execution, settings));
    return;
  }
  if (!isThenable(answer)) {
    onEnd(resultsOf(answer, execution, settings));
    return;
  }
  answer.then(
    (value: unknown) => onEnd(resultsOf(value, execution, settings)),
    (error: unknown) => onEnd(failuresOf(error, execution, settings)),
  );
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    value instanceof Promise || typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
  );
}

function failuresOf(thrown: unknown, execution: Execution, settings: WorkerSettings): Settlement[] {
  return execution.helds.map((held) => failed(held, thrown, execution, settings));
}

function single(execution: Execution, settings: WorkerSettings): ReturnType<Handler> {
  const [held] = execution.helds;
  return held === undefined
    ? undefined
    : settings.handler?.(held.message, new HandlerCall(execution, held, settings));
}

/** What a handler is given beside its message. */
class HandlerCall implements MessageContext {
  readonly #execution: Execution;
  readonly #held: Held;
  readonly #settings: WorkerSettings;

  constructor(execution: Execution, held: Held, settings: WorkerSettings) {
    this.#execution = execution;
    this.#held = held;
    this.#settings = settings;
  }

  get signal(): AbortSignal {
    return this.#execution.signal;
  }

  /** Works taken out of the context too: `({ id }, { followUp }) => …`. */
  get followUp(): MessageContext['followUp'] {
    return (queue, message) => this.#addFollowUp(queue, message);
  }

  #addFollowUp(queue: string, message: NewMessage): void {
    const { clock, payloadBytesMax } = this.#settings;
    const messages = [parseMessage(message, () => timeOrderedId(clock.now()), payloadBytesMax)];
    this.#held.followUps = [...(this.#held.followUps ?? []), { queue: parseQueueName(queue), messages }];
  }
}

function batch(execution: Execution, handler: BatchHandler): ReturnType<BatchHandler> {
  return handler(
    execution.helds.map(({ message }) => message),
    execution,
  );
}

function resultsOf(value: unknown, execution: Execution, settings: WorkerSettings): Settlement[] {
  if (settings.batch === undefined) return execution.helds.map((held) => completed(held, value, settings));
  if (value !== undefined && (!Array.isArray(value) || value.length !== execution.helds.length)) {
    const error = new TypeError(
      `the batch handler answered neither nothing nor ${execution.helds.length} results in order`,
    );
    return execution.helds.map((held) => failed(held, error, execution, settings));
  }
  return execution.helds.map((held, index) => {
    const result: unknown = value?.[index];
    return result instanceof Error
      ? failed(held, result, execution, settings)
      : completed(held, result, settings);
  });
}

/** A result that cannot be kept would not be kept the next time either: the message is errored and says why. */
function completed(held: Held, value: unknown, { resultBytesMax }: WorkerSettings): Settlement {
  if (value === undefined) return { kind: 'complete', held, result: undefined, followUps: held.followUps };
  try {
    const result = parseJson('result', value as JsonValue, resultBytesMax);
    return { kind: 'complete', held, result, followUps: held.followUps };
  } catch (error) {
    return { kind: 'fail', held, error: parseErrorText(error), retryDelayMs: undefined };
  }
}

/** A handler that ends because its time limit has passed is failed by that name, whatever it threw about it. */
export function failed(
  held: Held,
  thrown: unknown,
  { reason }: Execution,
  settings: WorkerSettings,
): Settlement {
  const failure = failureOf({
    thrown: reason?.code === 'handler-time-limit' ? reason : thrown,
    attempt: held.message.attempts,
    retry: settings.retry,
    random: settings.random,
  });
  return { ...failure, held };
}
