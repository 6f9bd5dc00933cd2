/** Recurring messages: one hash of JSON texts, changed by compare and set. */
import type { Recurring } from '../../store.js';
import type { Context, Request } from '../call.js';
import type { RedisClient } from '../connection.js';

/** The client reads, the functions write. */
export interface RecurringAccess {
  readonly client: RedisClient;
  readonly context: Context;
}

export async function readRecurring({ client, context }: RecurringAccess): Promise<Recurring[]> {
  const texts = await client.hvals(context.keys.recurring);
  return texts.map(decode).sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Sets; the next tick of one with the same expression and time zone is kept. */
export async function putRecurring(access: RecurringAccess, recurring: Recurring): Promise<void> {
  for (;;) {
    const text = await read(access, recurring.name);
    const existing = text === null ? undefined : decode(text);
    const keeps = existing?.cron === recurring.cron && existing.timeZone === recurring.timeZone;
    const next = JSON.stringify(keeps ? { ...recurring, next: existing.next } : recurring);
    if (await replace(access, recurring.name, text ?? '', next)) return;
  }
}

export async function removeRecurring(access: RecurringAccess, name: string): Promise<boolean> {
  for (;;) {
    const text = await read(access, name);
    if (text === null) return false;
    if (await replace(access, name, text, '')) return true;
  }
}

export async function advanceRecurring(
  access: RecurringAccess,
  { name, from, next }: Request<'advanceRecurring'>,
): Promise<boolean> {
  const text = await read(access, name);
  if (text === null) return false;
  const existing = decode(text);
  return existing.next === from && replace(access, name, text, JSON.stringify({ ...existing, next }));
}

const read = ({ client, context }: RecurringAccess, name: string): Promise<string | null> =>
  client.hget(context.keys.recurring, name);

async function replace(
  { context }: RecurringAccess,
  name: string,
  text: string,
  next: string,
): Promise<boolean> {
  const { caller, keys } = context;
  return (await caller.call('set_recurring', [keys.recurring], [name, text, next])) === 1;
}

/** JSON leaves out what is undefined; the port names it. */
function decode(text: string): Recurring {
  const recurring = JSON.parse(text) as Recurring;
  const { id, payload, metadata, priority, delayMs, attemptsMax, leaseMs, uniqueWhileLive, trace } =
    recurring.message;
  return {
    ...recurring,
    message: { id, payload, metadata, priority, delayMs, attemptsMax, leaseMs, uniqueWhileLive, trace },
  };
}
