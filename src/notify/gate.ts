/**
 * Stands between the worker and the queue's store: nothing is dequeued that could not be called now, so that waiting for
 * rate or for an open breaker holds no slot and writes nothing. When it holds something back it sees to it that the worker
 * asks again.
 */
import type { LeasedMessage, QueueStore } from '../queue/index.js';
import type { NotifySettings } from './options.js';
import type { RateLimiter } from './rate.js';
import type { ProviderSelection } from './selection.js';

type DequeueRequest = Parameters<QueueStore['dequeue']>[0];

/** How soon the worker asks again when no provider may be called. */
const shutMs = 250;
const waitMsMax = 5_000;

export function gateStore(input: {
  readonly settings: NotifySettings;
  readonly selection: ProviderSelection;
  readonly limiter: RateLimiter;
  /** Names of urgent kinds. */
  readonly isUrgent: (kind: string) => boolean;
}): { readonly store: QueueStore; stop(): void } {
  const { settings, selection, limiter, isUrgent } = input;
  const store = settings.queue.store;
  const timers = new Map<string, NodeJS.Timeout>();
  let hint: (queue: string) => void = () => {};

  const askAgain = (queue: string, ms: number): void => {
    if (timers.has(queue)) return;
    const again = (): void => {
      timers.delete(queue);
      hint(queue);
    };
    timers.set(queue, setTimeout(again, Math.min(waitMsMax, Math.max(1, ms))));
  };

  const dequeue = async (
    request: DequeueRequest,
    take: (request: DequeueRequest) => Promise<LeasedMessage[]>,
  ): Promise<LeasedMessage[]> => {
    const { queue, where } = request;
    const route = queue.slice(settings.queuePrefix.length + 1);
    if (!selection.isOpen(route)) {
      askAgain(queue, shutMs);
      return [];
    }
    const provider = selection.next(route);
    // Only a provider that is being tried out: one message is enough.
    if (provider === undefined) return take({ ...request, count: 1 });
    if (provider.rate === undefined) return take(request);
    const urgent = where['kind'] !== undefined && isUrgent(where['kind']);
    let { granted, waitMs } = await limiter.grant(provider, { count: request.count, urgent });
    let asked = request;
    if (granted === 0 && !urgent) {
      // The common share is used up; the reserved one may still serve the urgent ones.
      asked = { ...request, where: { ...where, priority: 'urgent' } };
      if ((provider.rate.reserved ?? 0) > 0)
        ({ granted, waitMs } = await limiter.grant(provider, { count: request.count, urgent: true }));
    }
    if (granted === 0) {
      askAgain(queue, waitMs);
      return [];
    }
    const messages = await take({ ...asked, count: granted });
    limiter.used(provider, { granted, used: messages.length });
    if (messages.length === granted || asked !== request) askAgain(queue, 1_000 / provider.rate.perSecond);
    return messages;
  };

  const gated: Partial<QueueStore> = {
    dequeue: (request) => dequeue(request, (asked) => store.dequeue(asked)),
    watch(queues, onHint) {
      hint = onHint;
      return store.watch(queues, onHint);
    },
  };
  if (store.settleAndDequeue !== undefined) {
    gated.settleAndDequeue = async ({ queue, complete, dequeue: request, now }) => {
      let completed: Awaited<ReturnType<QueueStore['complete']>> | undefined;
      const messages = await dequeue(request, async (asked) => {
        const answer = await store.settleAndDequeue!({ queue, complete, dequeue: asked, now });
        completed = answer.completed;
        return answer.messages;
      });
      completed ??= await store.complete({ queue, leases: complete, now });
      return { completed, messages };
    };
  }

  return {
    store: new Proxy(store, {
      get(target, name: keyof QueueStore) {
        if (Object.hasOwn(gated, name)) return gated[name];
        const member: unknown = Reflect.get(target, name, target);
        return typeof member === 'function' ? member.bind(target) : member;
      },
    }),
    stop() {
      for (const timer of timers.values()) clearTimeout(timer);
      timers.clear();
    },
  };
}
