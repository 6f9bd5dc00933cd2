/**
 * The worker of notifications: providers, slots with a floor for each kind that has one, and the sweep, as one
 * component. Its slots are its share of the pool, and so are its floors.
 */
import { invalidInput } from '../errors.js';
import type { Component } from '../lifecycle.js';
import { createWorker, type Lane, type Worker } from '../queue/index.js';
import type { Deliverer } from './deliver.js';
import { gateStore } from './gate.js';
import { queueOf, type NotifySettings } from './options.js';
import type { KindPolicy } from './kinds.js';
import type { Receipt } from './provider.js';
import type { RateLimiter } from './rate.js';
import type { ProviderSelection } from './selection.js';
import type { Sweep } from './sweep.js';

export interface NotifyWorkerOptions {
  /** Attempts side by side in this process. Default 100. */
  readonly slots?: number;
  /** Routes to serve (email, sms, push-fcm, …). Default: all that have a provider. */
  readonly routes?: readonly string[];
  /** False: no lanes, whatever the kinds say. For experiments. Default true. */
  readonly floors?: boolean;
  /** Lease of a wake-up in milliseconds. Default 30,000. */
  readonly leaseMs?: number;
}

export function createNotifyWorker(input: {
  readonly settings: NotifySettings;
  readonly policies: () => Promise<Iterable<KindPolicy>>;
  readonly deliverer: Deliverer;
  readonly selection: ProviderSelection;
  readonly limiter: RateLimiter;
  readonly sweep: Sweep;
  readonly receive: (provider: string, receipt: Receipt) => Promise<void>;
  readonly options: NotifyWorkerOptions;
}): Component {
  const { settings, deliverer, selection, sweep, options } = input;
  const { slots = 100, routes = selection.routes, floors = true, leaseMs } = options;
  for (const route of routes) {
    if (!selection.routes.includes(route))
      throw invalidInput('routes', route, `one of ${selection.routes.join(', ')}`);
  }
  let worker: Worker | undefined;

  const urgentKinds = new Set<string>();
  const gate = gateStore({
    settings,
    selection,
    limiter: input.limiter,
    isUrgent: (kind) => urgentKinds.has(kind),
  });

  const make = async (): Promise<Worker> => {
    const policies = [...(await input.policies())];
    for (const { name, priority } of policies) if (priority === 'urgent') urgentKinds.add(name);
    return createWorker({
      queue: { store: gate.store },
      queues: routes.map((route) => queueOf(settings, route)),
      slots,
      lanes: floors ? lanesOf(policies, { slots, poolSlots: settings.poolSlots }) : [],
      // A wake-up that is held in advance would take rate and time from the others.
      prefetch: false,
      retry: { delayMs: 200, delayMaxMs: 10_000 },
      log: settings.log,
      metrics: settings.metrics,
      clock: settings.clock,
      random: settings.random,
      ...(leaseMs !== undefined && { leaseMs }),
      handler: async (message, { signal }) => {
        const route = message.queue.slice(settings.queuePrefix.length + 1);
        const urgent = message.metadata['priority'] === 'urgent';
        await deliverer.deliver({ id: message.id, route, urgent, stopped: stoppedOnly(signal) });
      },
    });
  };

  return {
    async start() {
      if (worker !== undefined) return;
      await selection.start();
      for (const provider of settings.providers) {
        await provider.start?.({
          log: settings.log,
          receive: (receipt) => input.receive(provider.name, receipt),
        });
      }
      worker = await make();
      await worker.start();
      await sweep.start();
    },
    async stop(stopOptions) {
      await worker?.stop(stopOptions);
      worker = undefined;
      gate.stop();
      await deliverer.idle();
      await selection.stop();
      await sweep.stop();
      for (const provider of settings.providers) await provider.stop?.();
    },
  };
}

/** A lost lease does not end an attempt: the row is the truth, and its answer still counts. */
function stoppedOnly(signal: AbortSignal): AbortSignal {
  const stopped = new AbortController();
  const look = (): void => {
    const reason: unknown = signal.reason;
    if ((reason as { code?: string } | undefined)?.code === 'stopped') stopped.abort(reason);
  };
  if (signal.aborted) look();
  else signal.addEventListener('abort', look, { once: true });
  return stopped.signal;
}

/** The floor counts for the whole pool; each worker keeps its share of it. */
export function lanesOf(policies: Iterable<KindPolicy>, pool: { slots: number; poolSlots: number }): Lane[] {
  return [...policies]
    .filter(({ floor }) => floor > 0)
    .map(({ name, floor }) => ({
      name,
      where: { kind: name },
      floor: Math.max(1, Math.floor((floor / pool.poolSlots) * pool.slots)),
    }));
}
