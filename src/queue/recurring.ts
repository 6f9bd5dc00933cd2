/**
 * Recurring messages: a cron expression and a time zone make a message at each tick. Any number of processes may run the
 * same ones: the message's id is made of the name and the tick, so that each tick is enqueued once; ticks that passed
 * while nothing ran are caught up, each once, oldest first.
 */
import type { Cron } from 'croner';
import { groundError, invalidInput } from '../errors.js';
import type { Log } from '../log.js';
import type { MessageToStore, QueueStore, Recurring } from './store.js';

/** How often a process looks for recurring messages that others have set. */
const refreshMs = 5_000;
/** Ticks of one name that are caught up in one step. */
const ticksMax = 1_000;

export interface RecurringOptions {
  readonly store: QueueStore;
  readonly log: Log;
  readonly storeNow: () => number | undefined;
}

export class RecurringMessages {
  readonly #store: QueueStore;
  readonly #log: Log;
  readonly #storeNow: () => number | undefined;
  #refreshedAtMs = Number.NEGATIVE_INFINITY;
  /** The next tick by the store's clock; undefined when there is nothing recurring. */
  #next: number | undefined;
  /** What is added to the local clock that never jumps to have the store's: that of this machine may be wrong. */
  #storeAheadMs = 0;

  constructor({ store, log, storeNow }: RecurringOptions) {
    this.#store = store;
    this.#log = log;
    this.#storeNow = storeNow;
  }

  /** The first tick lies after now; one that exists with the same cron and time zone keeps its next tick. */
  async put(recurring: Omit<Recurring, 'next'>): Promise<Recurring> {
    const { type } = await this.#store.configuration(recurring.queue);
    if (type.kind === 'exclusive' && !Object.hasOwn(recurring.message.metadata, type.key))
      throw invalidInput(`metadata.${type.key}`, undefined, 'a value: the queue is exclusive by this key');
    const now = await this.#store.time(this.#storeNow());
    const next = nextTick(await loadCron(), recurring, now);
    if (next === undefined) throw invalidInput('cron', recurring.cron, 'an expression that has a next tick');
    const complete = { ...recurring, next };
    await this.#store.putRecurring(complete);
    this.#refreshedAtMs = Number.NEGATIVE_INFINITY;
    return complete;
  }

  async remove(name: string): Promise<boolean> {
    return this.#store.removeRecurring(name);
  }

  async list(): Promise<Recurring[]> {
    return this.#store.recurring({ due: false, now: this.#storeNow() });
  }

  /** Enqueues what is due; answers how many messages that were. Asks the store only when it may be. */
  async tick(): Promise<number> {
    if (performance.now() - this.#refreshedAtMs >= refreshMs) await this.#refresh();
    if (this.#next === undefined) return 0;
    const now = this.#storeNow();
    if ((now ?? performance.now() + this.#storeAheadMs) < this.#next) return 0;
    const due = await this.#store.recurring({ due: true, now });
    let enqueued = 0;
    for (const recurring of due) enqueued += await this.#catchUp(recurring);
    if (due.length > 0) await this.#refresh();
    return enqueued;
  }

  async #refresh(): Promise<void> {
    const all = await this.list();
    if (all.length > 0) this.#storeAheadMs = (await this.#store.time(this.#storeNow())) - performance.now();
    this.#refreshedAtMs = performance.now();
    this.#next = all.length === 0 ? undefined : Math.min(...all.map(({ next }) => next));
  }

  async #catchUp(recurring: Recurring): Promise<number> {
    const cron = await loadCron();
    const now = await this.#store.time(this.#storeNow());
    let { next } = recurring;
    let enqueued = 0;
    for (; next <= now && enqueued < ticksMax; enqueued += 1) {
      const message: MessageToStore = {
        ...recurring.message,
        id: `${recurring.name}@${new Date(next).toISOString()}`,
      };
      const [outcome] = await this.#store.enqueue({
        queue: recurring.queue,
        messages: [message],
        now: this.#storeNow(),
      });
      if (outcome?.kind === 'refused')
        this.#log.warn({ name: recurring.name, id: message.id, error: outcome.error }, 'a tick was refused');
      const after = nextTick(cron, recurring, next);
      if (after === undefined) {
        this.#log.warn({ name: recurring.name }, 'a recurring message has no further tick and was removed');
        await this.#store.removeRecurring(recurring.name);
        break;
      }
      // Somebody else has moved it on, and goes on from there.
      if (!(await this.#store.advanceRecurring({ name: recurring.name, from: next, next: after }))) break;
      next = after;
    }
    return enqueued;
  }
}

type CronClass = typeof Cron;

/** Loaded when the first recurring message is, so that the queue alone loads no other package. */
async function loadCron(): Promise<CronClass> {
  try {
    return (await import('croner')).Cron;
  } catch (cause) {
    throw groundError('driver-missing', 'recurring messages need the package croner: npm install croner', {
      cause,
    });
  }
}

function nextTick(
  cron: CronClass,
  { cron: expression, timeZone }: Pick<Recurring, 'cron' | 'timeZone'>,
  after: number,
): number | undefined {
  if (!isTimeZone(timeZone))
    throw invalidInput('timeZone', timeZone, 'an IANA time zone, such as "Europe/Berlin"');
  let schedule: Cron;
  try {
    schedule = new cron(expression, { paused: true, mode: '5-part', timezone: timeZone });
  } catch {
    throw invalidInput('cron', expression, 'a cron expression of five fields, such as "0 3 * * *"');
  }
  return schedule.nextRun(new Date(after))?.getTime();
}

/** Anything else would be taken for the zone of this process, or for a number of minutes. */
function isTimeZone(name: unknown): boolean {
  if (typeof name !== 'string' || !/^[a-z]/i.test(name)) return false;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}
