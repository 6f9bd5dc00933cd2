/** Joins the notification engine to what it needs: its worker is one of the process's only when there are kinds. */
import type { Database } from '../database/index.js';
import type { Component } from '../lifecycle.js';
import type { Log } from '../log.js';
import type { MetricsBackend } from '../metrics.js';
import { createNotify, type Notify, type NotifyStore } from '../notify/index.js';
import type { Queue } from '../queue/index.js';
import { noKinds, type NotifyConfiguration } from './notify/load.js';

export interface NotifyParts {
  readonly notify: Notify;
  /** Where providers and people reach this server. */
  readonly notifyPublicUrl: string | undefined;
  readonly notifyWorkers: readonly Component[];
}

export function wireNotify(input: {
  readonly database: Database;
  readonly queue: Queue;
  readonly store: NotifyStore;
  readonly configuration: NotifyConfiguration | undefined;
  readonly log: Log;
  readonly metrics: MetricsBackend;
}): NotifyParts {
  const { database, queue, store, metrics, configuration = noKinds } = input;
  const { log = input.log } = configuration;
  const { kinds, providers, unsubscribe, publicUrl, poolSlots, slots, breaker } = configuration;
  const notify = createNotify({
    database,
    queue,
    store,
    kinds,
    providers,
    log,
    metrics,
    ...(unsubscribe === undefined ? {} : { unsubscribe }),
    ...(poolSlots === undefined ? {} : { poolSlots }),
    ...(breaker === undefined ? {} : { breaker }),
  });
  const works = Object.keys(kinds).length > 0;
  return {
    notify,
    notifyPublicUrl: publicUrl,
    notifyWorkers: works ? [notify.worker(slots === undefined ? {} : { slots })] : [],
  };
}
