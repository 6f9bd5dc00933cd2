/**
 * The feed's worker: takes the feed's messages off the queue and keeps house. A floor of slots for small authors and for
 * repairs keeps big authors and clean-up from delaying them. Several processes may each run one.
 */
import { isHeadgateError } from '../errors.js';
import type { Component } from '../lifecycle.js';
import type { JsonValue } from '../queue/index.js';
import { createWorker, type Worker } from '../queue/worker/index.js';
import { createContext, type FeedConfiguration } from './configuration.js';
import type { FeedContext } from './context.js';
import { fanOut, fanOutBatch } from './fan-out.js';
import {
  foldFollowers,
  numberMerged,
  reportBytes,
  reportLag,
  sweepFanOuts,
  sweepModes,
  trimSome,
} from './housekeeping.js';
import { settleTimelineServers, startTimelineServers } from './timeline-servers.js';
import { backfill, forgetAuthor, rebuildIfNeeded } from './timeline-work.js';
import { VacuumRound } from './vacuum.js';
import { feedQueues, parseWork } from './work.js';

export interface FeedWorkerOptions {
  /** Messages worked on side by side, at least 4. Default 8: more than the connections of a pool gain nothing. */
  readonly slots?: number | undefined;
  /** Lease of a message in milliseconds, extended while it is worked on: how long a killed worker's work waits. Default 10,000. */
  readonly leaseMs?: number | undefined;
  /** How often the worker keeps house, in milliseconds. Default 1,000. */
  readonly housekeepingMs?: number | undefined;
}

export interface FeedWorker extends Component {
  /** One round of housekeeping, as the timer does it. */
  keepHouse(): Promise<void>;
}

export function createFeedWorker(
  configuration: FeedConfiguration,
  { slots = 8, leaseMs = 10_000, housekeepingMs = 1_000 }: FeedWorkerOptions = {},
): FeedWorker {
  const { context, settled } = createContext(configuration);
  const house = new Housekeeper(context, housekeepingMs);
  const handle = feedHandler(context);
  let worker: Worker | undefined;
  return {
    async start() {
      await context.store.start();
      await startTimelineServers(context);
      worker ??= createWorker({
        queue: context.queue,
        queues: [
          { queue: feedQueues.small, weight: 4 },
          { queue: feedQueues.big, weight: 2 },
          { queue: feedQueues.repair, weight: 2 },
          { queue: feedQueues.cleanUp, weight: 1 },
        ],
        slots,
        leaseMs,
        lanes: [
          { name: 'feed-small', queue: feedQueues.small, floor: { share: 0.25 } },
          { name: 'feed-repair', queue: feedQueues.repair, floor: { share: 0.25 } },
        ],
        handler: async ({ payload }) => handle(payload),
        retry: { delayMs: 500, delayMaxMs: 300_000 },
        log: context.log,
        clock: context.clock,
        ...(configuration.metrics && { metrics: configuration.metrics }),
      });
      await worker.start();
      house.start();
    },

    async stop(options) {
      await house.stop();
      await worker?.stop(options);
      await settled();
      await context.hints.stop();
    },

    keepHouse: () => house.round(),
  };
}

/** Does the work of one message of the feed. */
export function feedHandler(context: FeedContext): (payload: JsonValue) => Promise<void> {
  return async (payload) => {
    const work = parseWork(payload);
    if (!work) {
      context.log.error({ payload }, 'a message of the feed was not understood and is left out');
      return;
    }
    switch (work.kind) {
      case 'fan-out':
        return fanOut(context, work.post);
      case 'batch':
        return fanOutBatch(context, work);
      case 'backfill':
        return backfill(context, work);
      case 'rebuild':
        return rebuildIfNeeded(context, work.reader);
      case 'forget':
        return forgetAuthor(context, work);
      case 'erase':
        return erase(context, work.account);
    }
  };
}

async function erase({ database, store, options, now }: FeedContext, account: string): Promise<void> {
  const step = () =>
    database.transaction((transaction) =>
      store.eraseStep(transaction, { account, rowsMax: options.stepRowsMax, now: now() }),
    );
  while (await step());
}

/** Of each round of housekeeping, so that trimming keeps up and never holds the rest up. */
const trimMsMax = 100;
const restMs = 30_000;

/** Nobody waits for vacuum: it takes a twentieth of one connection, and rests long when it has been everywhere. */
const vacuumMsMax = 50;
const vacuumRestMs = 600_000;

/** Answers whether the round of steps has ended. */
async function stepsWithin(
  { clock }: FeedContext,
  msMax: number,
  step: () => Promise<boolean>,
): Promise<boolean> {
  const endsAtMs = clock.monotonicMs() + msMax;
  let ended = false;
  while (!ended && clock.monotonicMs() < endsAtMs) ended = await step();
  return ended;
}

const stopped = ['database-closed', 'database-unavailable', 'stopped'];

/** Work that goes round in steps rests between two rounds, so that an idle feed leaves the database alone. */
class Pace {
  #restsUntilMs = Number.NEGATIVE_INFINITY;

  isDue({ clock }: FeedContext): boolean {
    return clock.monotonicMs() >= this.#restsUntilMs;
  }

  took({ clock }: FeedContext, ended: boolean, forMs = restMs): void {
    if (ended) this.#restsUntilMs = clock.monotonicMs() + forMs;
  }
}

class Housekeeper {
  readonly #context: FeedContext;
  readonly #everyMs: number;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #ended = true;
  readonly #modes = new Pace();
  readonly #merged = new Pace();
  readonly #trim = new Pace();
  readonly #vacuum = new Pace();
  readonly #bytes = new Pace();
  readonly #vacuumRound = new VacuumRound();

  constructor(context: FeedContext, everyMs: number) {
    this.#context = context;
    this.#everyMs = everyMs;
  }

  start(): void {
    if (!this.#ended) return;
    this.#ended = false;
    this.#plan();
  }

  async stop(): Promise<void> {
    this.#ended = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  /** `all`: also what goes round and has just ended a round. */
  async round({ all = true } = {}): Promise<void> {
    const context = this.#context;
    await foldFollowers(context);
    await settleTimelineServers(context);
    await sweepFanOuts(context);
    if (all || this.#modes.isDue(context)) this.#modes.took(context, await sweepModes(context));
    if (all || this.#merged.isDue(context)) this.#merged.took(context, await numberMerged(context));
    if (all || this.#trim.isDue(context)) {
      this.#trim.took(context, await stepsWithin(context, trimMsMax, () => trimSome(context)));
    }
    if (all || this.#vacuum.isDue(context)) {
      const ended = await stepsWithin(context, vacuumMsMax, () => this.#vacuumRound.step(context));
      this.#vacuum.took(context, ended, vacuumRestMs);
    }
    if (all || this.#bytes.isDue(context)) {
      await reportBytes(context);
      this.#bytes.took(context, true);
    }
    await reportLag(context);
  }

  #plan(): void {
    this.#timer = setTimeout(() => {
      this.#running = this.round({ all: false })
        .catch((error: unknown) => {
          // The database is away or closing: said by others, and the next round tries again.
          const quiet = isHeadgateError(error) && stopped.includes(error.code);
          this.#context.log[quiet ? 'debug' : 'error'](
            { error },
            'a round of housekeeping of the feed failed',
          );
        })
        .finally(() => {
          if (!this.#ended) this.#plan();
        });
    }, this.#everyMs);
  }
}
