/**
 * A counterpart with Resend's idempotency: a key is kept for 24 hours with its body and its answer; the same key with
 * another body, and a key whose first request still runs, are answered as Resend documents it.
 */
import { startHttpCounterpart, type HttpCounterpart, type ReceivedRequest } from './provider-http.js';
import type { FaultScript } from './provider-faults.js';

export interface ResendCounterpart extends HttpCounterpart {
  /** E-mails that were really sent, by idempotency key. */
  readonly sent: ReadonlyMap<string, { readonly id: string; readonly body: string }>;
  /** Requests that gave a known key another body; an engine that freezes its bytes never makes one. */
  readonly otherPayloads: () => number;
}

const error = (name: string) => JSON.stringify({ statusCode: 409, name, message: name });

export async function startResendCounterpart(
  options: { readonly faults?: FaultScript } = {},
): Promise<ResendCounterpart> {
  const sent = new Map<string, { id: string; body: string }>();
  /** The first request of a key, while it is at work. */
  const running = new Map<string, ReceivedRequest>();
  let otherPayloads = 0;
  const counterpart = await startHttpCounterpart({
    ...options,
    identify: ({ headers }: ReceivedRequest) => headers['idempotency-key'] ?? '',
    // A message that is taken is sent once a key, whatever its caller was told.
    onTaken(request, fault) {
      const { headers, body } = request;
      const key = headers['idempotency-key'] ?? '';
      if (sent.has(key)) return;
      sent.set(key, { id: `email-${sent.size + 1}`, body: body.toString() });
      if (fault.kind === 'late') running.set(key, request);
    },
    answer(request) {
      const { headers, body } = request;
      const key = headers['idempotency-key'] ?? '';
      const first = sent.get(key);
      const atWork = running.get(key);
      if (atWork === request) running.delete(key);
      else if (atWork !== undefined) return { status: 409, body: error('concurrent_idempotent_requests') };
      if (first !== undefined && first.body !== body.toString()) {
        otherPayloads += 1;
        return { status: 409, body: error('invalid_idempotent_request') };
      }
      return { status: 200, body: JSON.stringify({ id: first?.id }) };
    },
  });
  return { ...counterpart, sent, otherPayloads: () => otherPayloads };
}
