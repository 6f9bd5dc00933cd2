/**
 * Webhooks: the notification as JSON to a URL of the user's, signed by Standard Webhooks. The id is the delivery's, the
 * same in every attempt: the consumer's key against duplicates. Redirects are never followed; a target inside the
 * network is never called.
 */
import { systemClock, type Clock } from '../../clock.js';
import { invalidInput } from '../../errors.js';
import type { AttemptOutcome, Provider } from '../provider.js';
import type { Destination } from '../notification.js';
import { httpOutcome, type HttpVerdicts } from './http-outcome.js';
import { sendOnce } from './http-request.js';
import { signWebhook } from './webhook-signature.js';
import { createTargetCheck } from './webhook-target.js';

export interface WebhookOptions {
  /** Default: webhook. */
  readonly name?: string;
  /** Secrets of a destination, the newest first; several while one is being replaced. `whsec_…`, or any text. */
  readonly secrets: readonly string[] | ((destination: Destination) => readonly string[]);
  /** Hosts inside the network that may be called all the same: `host` or `host:port`. Default: none. */
  readonly allow?: readonly string[];
  /** Default: 15,000 ms. */
  readonly timeoutMs?: number;
  /** Overrides by status. */
  readonly verdicts?: HttpVerdicts;
  readonly rate?: Provider['rate'];
  readonly clock?: Clock;
  /** Certificate authority in PEM, for targets with their own. */
  readonly ca?: string;
  /** For tests of names that change their mind. Default: the system's. */
  readonly resolve?: Parameters<typeof createTargetCheck>[1];
}

const verdictsDefault: HttpVerdicts = { '401': 'refused', '403': 'refused', '410': 'retire' };

export function createWebhookProvider(options: WebhookOptions): Provider {
  const { name = 'webhook', secrets, timeoutMs = 15_000, clock = systemClock, ca, rate } = options;
  const targets = createTargetCheck(options.allow, options.resolve);
  const verdicts = { ...verdictsDefault, ...options.verdicts };
  if (Array.isArray(secrets) && secrets.length === 0) throw invalidInput('secrets', 0, 'at least one secret');

  return {
    name,
    channel: 'webhook',
    oneService: false,
    timeoutMs,
    rate,
    async attempt({ reference, destination, content, createdAt }, { signal }): Promise<AttemptOutcome> {
      const url = new URL(destination.address);
      if (targets.refuses(url)) return { kind: 'refused', detail: 'target not allowed' };
      const body = JSON.stringify({
        type: content['type'] ?? 'notification',
        timestamp: new Date(createdAt).toISOString(),
        data: content['data'],
      });
      const result = await sendOnce({
        url,
        body,
        signal,
        ca,
        lookup: targets.lookupFor(url),
        headers: {
          'content-type': 'application/json',
          'user-agent': 'headgate',
          ...signWebhook({
            id: reference,
            seconds: Math.floor(clock.now() / 1_000),
            body,
            secrets: typeof secrets === 'function' ? secrets(destination) : secrets,
          }),
        },
      });
      if (result.kind === 'not-written' && result.reason === 'target-refused')
        return { kind: 'refused', detail: 'target not allowed' };
      if (result.kind === 'answer' && result.status >= 200 && result.status < 300)
        return { kind: 'sent', detail: `http ${result.status}` };
      return httpOutcome(result, { verdicts, now: clock.now() });
    },
  };
}
