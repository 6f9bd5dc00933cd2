/** enqueue: batches are cut so that no call carries more than a bounded number of messages, index entries and bytes. */
import { invalidInput } from '../../../errors.js';
import { queueError } from '../../errors.js';
import type { EnqueueOutcome, MessageToStore } from '../../store.js';
import { type Context, type Place, run } from '../call.js';
import { encodeHead, flag, stateOfLetter } from '../codec.js';

const entriesPerCall = 1_000;
const bytesPerCall = 1_048_576;

/** The three arguments of a message, see lua/enqueue.lua. */
export function enqueueArguments(message: MessageToStore): [id: string, options: string, tail: string] {
  const head = encodeHead(message.metadata, message.trace);
  const hasMetadata = head !== '' && !head.startsWith('[[]');
  const flags = (message.uniqueWhileLive ? flag.unique : 0) + (hasMetadata ? flag.hasMetadata : 0);
  const { priority = '', delayMs = '', attemptsMax = '', leaseMs = '' } = message;
  return [
    message.id,
    `${priority},${delayMs},${attemptsMax},${leaseMs},${flags}`,
    `${head}\n${message.payload}`,
  ];
}

function* steps(messages: readonly MessageToStore[]): Generator<MessageToStore[]> {
  let step: MessageToStore[] = [];
  let entries = 0;
  let bytes = 0;
  for (const message of messages) {
    step.push(message);
    entries += 1 + Object.keys(message.metadata).length;
    bytes += message.payload.length;
    if (entries < entriesPerCall && bytes < bytesPerCall) continue;
    yield step;
    step = [];
    entries = 0;
    bytes = 0;
  }
  if (step.length > 0) yield step;
}

/** Whether the message was refused because it lacks an exclusivity value. */
export const isKeyMissing = (letters: Buffer, at: number): boolean => letters[at] === 0x6d;

/** Reads the two letters of any other message, see lua/enqueue.lua. */
export function enqueueOutcome(queue: string, id: string, letters: Buffer, at: number): EnqueueOutcome {
  const kind = String.fromCharCode(letters[at]!);
  if (kind === 'b') return { kind: 'refused', id, error: enqueueBlocked(queue) };
  const state = stateOfLetter(letters[at + 1]!);
  if (kind === 'c') return { kind: 'conflict', id, state };
  return { kind: 'enqueued', id, created: kind === 'n', state };
}

export interface Enqueued {
  readonly outcomes: EnqueueOutcome[];
  /** The queue did not exist before. */
  readonly isNew: boolean;
}

export async function enqueue(
  context: Context,
  place: Place,
  {
    messages,
    now,
    exclusiveKey,
  }: {
    messages: readonly MessageToStore[];
    now: number | undefined;
    /** For the text of a refusal. */
    exclusiveKey: () => Promise<string>;
  },
): Promise<Enqueued> {
  const outcomes: EnqueueOutcome[] = [];
  let isNew = false;
  for (const step of steps(messages)) {
    const { again, answer } = await run(context, place, 'enqueue', now, step.flatMap(enqueueArguments));
    isNew ||= again === 1;
    const letters = answer as Buffer;
    for (const [index, { id }] of step.entries()) {
      if (isKeyMissing(letters, 2 * index))
        outcomes.push({ kind: 'refused', id, error: keyMissing(await exclusiveKey()) });
      else outcomes.push(enqueueOutcome(place.queue, id, letters, 2 * index));
    }
  }
  return { outcomes, isNew };
}

export const enqueueBlocked = (queue: string) =>
  queueError('enqueue-blocked', `queue "${queue}" takes no messages now`, { ids: { queue } });

export const keyMissing = (key: string) =>
  invalidInput(`metadata.${key}`, undefined, 'a value: the queue is exclusive by this key');
