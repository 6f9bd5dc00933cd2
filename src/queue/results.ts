/** Waiting for a message to end: a change that this process makes is seen at once, another's by asking, ever less often. */
import type { EventListener } from './events.js';
import type { Message } from './message.js';

export interface ResultRequest {
  readonly get: () => Promise<Message | undefined>;
  readonly onEvent: (listener: EventListener) => () => void;
  readonly waitMs: number;
  /** The longest pause between two looks. */
  readonly pollMs: number;
  readonly isOver: () => boolean;
  readonly signal: AbortSignal | undefined;
}

const firstPauseMs = 10;

/** The terminal message; undefined when it is unknown or has not ended in time. */
export async function waitForResult(request: ResultRequest): Promise<Message | undefined> {
  const endsAtMs = performance.now() + request.waitMs;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, request.pollMs)) {
    const message = await request.get().catch((error: unknown) => {
      if (request.isOver()) return undefined;
      throw error;
    });
    if (!message || message.finishedAt !== undefined) return message;
    const leftMs = endsAtMs - performance.now();
    if (leftMs <= 0 || request.isOver()) return undefined;
    await changeOf(message, Math.min(pauseMs, leftMs), request);
  }
}

/** Resolves at the next change of the message, when `ms` have passed, or when the signal fires. */
function changeOf({ queue, id }: Message, ms: number, { onEvent, signal }: ResultRequest): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      unsubscribe();
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done, { once: true });
    const unsubscribe = onEvent((event) => {
      if (event.id === id && event.queue === queue) done();
    });
  });
}
