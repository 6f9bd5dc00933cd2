/** get, history and list: the stored state. */
import { invalidInput } from '../../../errors.js';
import type { Message, MessageEvent } from '../../message.js';
import { type Context, keysOf, type Place, type Request, run } from '../call.js';
import { decodeHistory, decodeMessage, letterOfState } from '../codec.js';

async function readStored(context: Context, place: Place, id: string): Promise<Buffer[]> {
  return (await context.caller.call('get', keysOf(context, place), [id])) as Buffer[];
}

export async function get(context: Context, place: Place, id: string): Promise<Message | undefined> {
  const [body, state] = await readStored(context, place, id);
  return body && state && withoutToken(decodeMessage(place.queue, id, body, state));
}

/** Whether the message runs under this very lease. */
export async function isHeld(
  context: Context,
  place: Place,
  { id, leaseToken }: { readonly id: string; readonly leaseToken: string },
): Promise<boolean> {
  const [body, state] = await readStored(context, place, id);
  if (!body || !state) return false;
  const stored = decodeMessage(place.queue, id, body, state);
  return stored.state === 'running' && stored.leaseToken === leaseToken;
}

export async function history(context: Context, place: Place, id: string): Promise<MessageEvent[]> {
  const [body, state] = await readStored(context, place, id);
  return body && state ? decodeHistory(place.queue, id, body, state) : [];
}

export interface ListedMessage {
  readonly message: Message;
  /** Where the list goes on behind this message. */
  readonly cursor: ListCursor;
}

/** Score and number of the last message, as in the sorted set of its state. */
export type ListCursor = readonly [score: string, number: Buffer];

/** At most `limit` messages behind the cursor, in steps that each walk a bounded number. */
export async function* listed(
  context: Context,
  place: Place,
  {
    state,
    where,
    newestFirst = false,
    now,
  }: Pick<Request<'list'>, 'state' | 'where' | 'newestFirst' | 'now'>,
  limit: number,
  after: ListCursor | undefined,
): AsyncGenerator<ListedMessage> {
  let cursor: ListCursor = after ?? ['', Buffer.alloc(0)];
  for (let left = limit; left > 0; ) {
    const letter = `${newestFirst ? '-' : ''}${letterOfState(state)}`;
    const args = [letter, left, ...cursor, ...Object.entries(where).flat()];
    const { answer } = await run(context, place, 'list', now, args);
    const [next, ...parts] = answer as [Buffer | null, ...Buffer[]];
    for (let index = 0; index < parts.length; index += 3, left -= 1) {
      const [key, body, record] = parts.slice(index, index + 3) as [Buffer, Buffer, Buffer];
      const message = withoutToken(decodeMessage(place.queue, key.toString(), body, record));
      yield { message, cursor: cursorOf(message, body) };
    }
    if (next === null) return;
    const space = next.indexOf(32);
    cursor = [next.toString('latin1', 0, space), next.subarray(space + 1)];
  }
}

function cursorOf(message: Message, body: Buffer): ListCursor {
  const number = Buffer.from(body.subarray(0, 8));
  const scores: Partial<Record<Message['state'], number>> = {
    pending: message.priority,
    invisible: message.visibleAt,
    running: message.leaseUntil ?? 0,
  };
  const ofNumber = number.readUInt32BE(0) * 10_000_000 + number.readUInt32BE(4);
  return [String(scores[message.state] ?? ofNumber), number];
}

export const encodeCursor = ([score, number]: ListCursor): string =>
  Buffer.concat([number, Buffer.from(score)]).toString('base64url');

export function decodeCursor(text: string): ListCursor {
  const bytes = Buffer.from(text, 'base64url');
  const score = bytes.toString('latin1', 8);
  if (bytes.length < 9 || !/^-?\d+$/.test(score)) throw invalidInput('after', text, 'the cursor of a page');
  return [score, bytes.subarray(0, 8)];
}

/** What is read is no lease: its token stays inside. */
function withoutToken(message: Message & { leaseToken?: string }): Message {
  delete message.leaseToken;
  return message;
}
