/**
 * What becomes of a message whose handler threw: back with a delay (exponential, full jitter), errored at once, or given
 * back without a spent attempt. Pure: the store alone knows whether attempts are left.
 */
import { invalidInput } from '../errors.js';
import { parseErrorText } from './parse.js';

export interface RetryOptions {
  /** Upper bound of the first delay in milliseconds. Default: 1,000; 0: at once. */
  readonly delayMs: number;
  /** Upper bound of every delay in milliseconds. Default: 600,000. */
  readonly delayMaxMs: number;
  /** By how much the bound grows with each attempt. Default: 2. */
  readonly factor: number;
  /** Full jitter: each delay is drawn evenly from 0 to its bound. Default: true. */
  readonly jitter: boolean;
}

export const retryDefaults: RetryOptions = { delayMs: 1_000, delayMaxMs: 600_000, factor: 2, jitter: true };

/** Thrown by a handler: the message is errored at once, however many attempts are left. */
export class NoRetryError extends Error {
  override readonly name: string = 'NoRetryError';
  readonly retry = false;
}

/** Thrown by a handler: the message comes back after exactly `retryDelayMs` milliseconds; the attempt is spent. */
export class RetryError extends Error {
  override readonly name: string = 'RetryError';
  readonly retryDelayMs: number;

  constructor(message: string, options: { readonly retryDelayMs: number; readonly cause?: unknown }) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    if (!Number.isSafeInteger(options.retryDelayMs) || options.retryDelayMs < 0) {
      throw invalidInput(
        'retryDelayMs',
        options.retryDelayMs,
        'a whole number of milliseconds of at least 0',
      );
    }
    this.retryDelayMs = options.retryDelayMs;
  }
}

/** Thrown by a handler that did not do the work: the message goes back after `delayMs` and no attempt is spent. */
export class ReleaseError extends Error {
  override readonly name: string = 'ReleaseError';
  readonly delayMs: number;

  constructor(message: string, options: { readonly delayMs?: number } = {}) {
    super(message);
    const delayMs = options.delayMs ?? 0;
    if (!Number.isSafeInteger(delayMs) || delayMs < 0) {
      throw invalidInput('delayMs', delayMs, 'a whole number of milliseconds of at least 0');
    }
    this.delayMs = delayMs;
  }
}

export type Failure =
  | { readonly kind: 'fail'; readonly error: string; readonly retryDelayMs: number | undefined }
  | { readonly kind: 'release'; readonly delayMs: number };

/**
 * Reads what a handler threw. Any object may ask for its treatment by two properties: `retry: false` (errored at once)
 * and `retryDelayMs` (that delay instead of the drawn one).
 */
export function failureOf(request: {
  readonly thrown: unknown;
  readonly attempt: number;
  readonly retry: RetryOptions;
  readonly random: () => number;
}): Failure {
  const { thrown } = request;
  if (thrown instanceof ReleaseError) return { kind: 'release', delayMs: thrown.delayMs };
  const asked: { readonly retry?: unknown; readonly retryDelayMs?: unknown } =
    typeof thrown === 'object' && thrown !== null ? thrown : {};
  const error = parseErrorText(thrown);
  if (asked.retry === false) return { kind: 'fail', error, retryDelayMs: undefined };
  if (
    typeof asked.retryDelayMs === 'number' &&
    Number.isSafeInteger(asked.retryDelayMs) &&
    asked.retryDelayMs >= 0
  ) {
    return { kind: 'fail', error, retryDelayMs: asked.retryDelayMs };
  }
  return { kind: 'fail', error, retryDelayMs: retryDelayMs(request) };
}

/** The delay before the attempt after `attempt` (the first attempt is 1). */
export function retryDelayMs(request: {
  readonly attempt: number;
  readonly retry: RetryOptions;
  readonly random: () => number;
}): number {
  const { delayMs, delayMaxMs, factor, jitter } = request.retry;
  const boundMs = Math.min(delayMaxMs, delayMs * factor ** Math.max(0, request.attempt - 1));
  return Math.floor(jitter ? request.random() * (boundMs + 1) : boundMs);
}

/** Fills in the defaults and refuses by name what makes no sense. */
export function resolveRetry(given: Partial<RetryOptions> = {}): RetryOptions {
  const retry = { ...retryDefaults, ...given };
  for (const field of ['delayMs', 'delayMaxMs'] as const) {
    if (!Number.isSafeInteger(retry[field]) || retry[field] < 0) {
      throw invalidInput(`retry.${field}`, retry[field], 'a whole number of milliseconds of at least 0');
    }
  }
  if (!Number.isFinite(retry.factor) || retry.factor < 1) {
    throw invalidInput('retry.factor', retry.factor, 'a number of at least 1');
  }
  if (typeof retry.jitter !== 'boolean') throw invalidInput('retry.jitter', retry.jitter, 'true or false');
  return retry;
}
