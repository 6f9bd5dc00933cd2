/**
 * The straight way of a call for one message: to the only place of a queue that is open, while nobody listens to events. Whatever is not so
 * has no straight way (undefined), and goes as calls for many do.
 */
import type { Context, Place } from './call.js';
import type { Straight } from './gathered.js';
import { completeOne, dequeueOne, enqueueOne, isPlain, type QueueAccess } from './operations/one.js';

export interface StraightAccess extends QueueAccess {
  /** The store's context, once it is open. */
  readonly context: () => Context | undefined;
  readonly placesOf: (queue: string) => readonly Place[];
  /** The queue is in the set of names. */
  readonly isNamed: (queue: string) => boolean;
}

export function straightCalls(access: StraightAccess): Straight {
  const contextFor = (places: readonly Place[]): Context | undefined => {
    const context = access.context();
    return places.length === 1 && context?.publish === undefined ? context : undefined;
  };
  return {
    enqueue({ queue, messages, now }) {
      const places = access.placesOf(queue);
      const context = contextFor(places);
      if (!context || messages.length !== 1 || !isPlain(messages[0]!) || !access.isNamed(queue))
        return undefined;
      return enqueueOne(context, places[0]!, { message: messages[0]!, now }, access);
    },
    dequeue(request) {
      const places = access.placesOf(request.queue);
      const context = contextFor(places);
      return context && request.count === 1 ? dequeueOne(context, places[0]!, request) : undefined;
    },
    complete({ queue, leases, now }) {
      const places = access.placesOf(queue);
      const context = contextFor(places);
      return context && leases.length === 1
        ? completeOne(context, places[0]!, { lease: leases[0]!, now })
        : undefined;
    },
  };
}
