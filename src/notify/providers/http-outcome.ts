/**
 * What is known after an HTTP request, for any provider: the table of statuses, which an adapter or the configuration may
 * override where a vendor says otherwise.
 */
import type { AttemptOutcome } from '../provider.js';
import type { HttpResult } from './http-request.js';

/** `configuration`: refused because of our credentials. `retire`: refused because the destination is dead. */
export type HttpVerdict = 'not-accepted' | 'refused' | 'ambiguous' | 'configuration' | 'retire';

/** By status, or by `status vendor-code` where a vendor has codes; the more exact one decides. */
export type HttpVerdicts = Readonly<Record<string, HttpVerdict>>;

const verdictsDefault: HttpVerdicts = {
  '401': 'configuration',
  '403': 'configuration',
  '408': 'ambiguous',
  '429': 'not-accepted',
};

/** The outcome of anything but a success; an adapter reads its successes itself. */
export function httpOutcome(
  result: HttpResult,
  options: {
    readonly verdicts?: HttpVerdicts | undefined;
    readonly code?: string | undefined;
    readonly now: number;
  },
): AttemptOutcome {
  if (result.kind === 'not-written')
    return { kind: 'not-accepted', detail: `not connected: ${result.reason}`, unanswered: true };
  if (result.kind === 'no-answer')
    return { kind: 'ambiguous', detail: `no answer: ${result.reason}`, unanswered: true };
  const { status } = result;
  const code = options.code === undefined ? undefined : `${status} ${options.code}`;
  const detail = `http ${code ?? status}`;
  const retryAfterMs = parseRetryAfter(result.headers['retry-after'], options.now);
  const verdict =
    (code === undefined ? undefined : options.verdicts?.[code]) ??
    options.verdicts?.[String(status)] ??
    verdictsDefault[String(status)] ??
    (status >= 500 || status < 300 ? 'ambiguous' : 'refused');
  switch (verdict) {
    case 'not-accepted':
      return { kind: 'not-accepted', detail, retryAfterMs };
    case 'ambiguous':
      return { kind: 'ambiguous', detail, retryAfterMs };
    case 'configuration':
      return { kind: 'refused', detail, configuration: true };
    case 'retire':
      return { kind: 'refused', detail, retire: { reason: detail } };
    case 'refused':
      return { kind: 'refused', detail };
  }
}

const retryAfterMsMax = 86_400_000;

/** Seconds or a date, as milliseconds from `now`; undefined for what is neither. */
export function parseRetryAfter(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  const ms = /^\d+(\.\d+)?$/.test(value.trim()) ? Number(value) * 1_000 : Date.parse(value) - now;
  return Number.isFinite(ms) ? Math.min(retryAfterMsMax, Math.max(0, Math.ceil(ms))) : undefined;
}
