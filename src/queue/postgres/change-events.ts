/**
 * Events of the changes that this process makes, put together from what the statements answer. Nothing is put together
 * while nobody listens. The moment is the process's, near enough; the stored history has the store's.
 */
import type { LeasedMessage, MessageEvent } from '../message.js';
import type { EnqueueOutcome, MessageToStore } from '../store.js';
import type { Operated } from './operations/operate.js';
import type { Settled } from './operations/settle.js';

type Listener = (events: readonly MessageEvent[]) => void;

export class ChangeEvents {
  readonly #listeners = new Set<Listener>();

  get isHeard(): boolean {
    return this.#listeners.size > 0;
  }

  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  enqueued(
    { queue, messages, now }: { queue: string; messages: readonly MessageToStore[]; now: number | undefined },
    outcomes: readonly (EnqueueOutcome & { readonly seq?: string })[],
  ): void {
    this.#publish(() =>
      outcomes.flatMap((outcome, place) => {
        if (outcome.kind !== 'enqueued' || outcome.seq === undefined) return [];
        const { id, state: to, seq: incarnation } = outcome;
        const { metadata } = messages[place]!;
        return [
          { queue, id, version: 1, from: undefined, to, at: atOf(now), attempt: 0, metadata, incarnation },
        ];
      }),
    );
  }

  dequeued(messages: readonly LeasedMessage[]): void {
    this.#publish(() =>
      messages.map(({ queue, id, version, attempts: attempt, metadata, startedAt, leaseToken }) => {
        const incarnation = leaseToken.slice(leaseToken.lastIndexOf('.') + 1);
        return {
          queue,
          id,
          version,
          from: 'pending',
          to: 'running',
          at: startedAt!,
          attempt,
          metadata,
          incarnation,
        };
      }),
    );
  }

  settled(queue: string, settled: readonly Settled[], now: number | undefined): void {
    this.#publish(() =>
      settled.flatMap(({ outcome, change }) => {
        if (outcome.kind !== 'done' || !change) return [];
        const { id, version, state: to } = outcome;
        const { seq: incarnation, attempt, metadata } = change;
        return [{ queue, id, version, from: 'running', to, at: atOf(now), attempt, metadata, incarnation }];
      }),
    );
  }

  /** Cancel, change, requeue. */
  operated(
    { queue, now }: { queue: string; now: number | undefined },
    operated: readonly Operated<{ readonly id: string }>[],
  ): void {
    this.#publish(() =>
      operated.flatMap(({ outcome: { id }, change }) => {
        if (!change) return [];
        const { seq: incarnation, from, to, version, attempt, metadata } = change;
        return [{ queue, id, version, from, to, at: atOf(now), attempt, metadata, incarnation }];
      }),
    );
  }

  #publish(makeEvents: () => MessageEvent[]): void {
    if (!this.isHeard) return;
    const events = makeEvents();
    if (events.length > 0) for (const listener of this.#listeners) listener(events);
  }
}

const atOf = (now: number | undefined): number => now ?? Date.now();
