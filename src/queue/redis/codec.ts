/** Reads what lua/record.lua packs: bodies, state records, answers and events. */
import type { JsonValue, LeasedMessage, Message, MessageEvent, MessageState, Metadata } from '../message.js';

const states: Readonly<Record<string, MessageState>> = {
  p: 'pending',
  i: 'invisible',
  r: 'running',
  c: 'completed',
  x: 'canceled',
  e: 'errored',
};

export const stateOfLetter = (letter: number): MessageState => states[String.fromCharCode(letter)]!;
export const letterOfState = (state: MessageState): string =>
  Object.keys(states).find((letter) => states[letter] === state)!;

const bodySize = 45;
const stateSize = 89;
const eventSize = 18;
const newline = 10;

export const flag = {
  unique: 1,
  historyFromStart: 2,
  beganInvisible: 4,
  hasMetadata: 8,
  hasText: 16,
} as const;

/** `[[key, value, …], trace]`, or nothing when there is neither. */
export function encodeHead(metadata: Metadata, trace: string | undefined): string {
  const pairs = Object.entries(metadata).flat();
  if (pairs.length === 0 && trace === undefined) return '';
  return JSON.stringify(trace === undefined ? [pairs] : [pairs, trace]);
}

function decodeHead(text: string): { metadata: Metadata; trace: string | undefined } {
  if (text === '') return { metadata: {}, trace: undefined };
  const [flat, trace] = JSON.parse(text) as [string[], string?];
  const metadata: Record<string, string> = {};
  for (let index = 0; index < flat.length; index += 2) {
    Object.defineProperty(metadata, flat[index]!, {
      value: flat[index + 1],
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return { metadata, trace };
}

/** -1 stands for none. */
const some = (value: number): number | undefined => (value < 0 ? undefined : value);

const incarnationOf = (bytes: Buffer, at: number): string => {
  const high = bytes.readUInt32BE(at);
  const low = bytes.readUInt32BE(at + 4);
  return high === 0 ? String(low) : `${high}${String(low).padStart(7, '0')}`;
};

const idOfKey = (key: string): string => {
  const end = key.indexOf('\0');
  return end < 0 ? key : key.slice(0, end);
};

interface Body {
  readonly enqueuedAt: number;
  readonly head: string;
  readonly payload: string;
}

function readBody(body: Buffer): Body {
  const headEnd = body.indexOf(newline, bodySize);
  return {
    enqueuedAt: body.readDoubleBE(16),
    head: headEnd === bodySize ? '' : body.toString('utf8', bodySize, headEnd),
    payload: body.toString('utf8', headEnd + 1, body.length),
  };
}

/** A message that nobody has touched since its enqueue. */
function fresh(queue: string, key: string, body: Buffer): Message {
  const { enqueuedAt, head, payload } = readBody(body);
  const { metadata, trace } = decodeHead(head);
  return {
    queue,
    id: idOfKey(key),
    payload: JSON.parse(payload) as JsonValue,
    metadata,
    priority: body.readDoubleBE(8),
    state: body[44]! & flag.beganInvisible ? 'invisible' : 'pending',
    attempts: 0,
    attemptsMax: body.readUInt32BE(24),
    visibleAt: body.readDoubleBE(28),
    leaseUntil: undefined,
    version: 1,
    enqueuedAt,
    startedAt: undefined,
    finishedAt: undefined,
    result: undefined,
    error: undefined,
    trace,
  };
}

/** A message by its body and its state record; an empty record stands for none. */
export function decodeMessage(
  queue: string,
  key: string,
  body: Buffer,
  state: Buffer,
): Message & { leaseToken?: string } {
  return state.length === 0 ? fresh(queue, key, body) : decodeLeased(queue, key, body, state);
}

/** With the token of its lease, which means something while it runs. */
export function decodeLeased(queue: string, id: string, body: Buffer, state: Buffer): LeasedMessage {
  const { enqueuedAt, head, payload } = readBody(body);
  const { metadata, trace } = decodeHead(head);
  const tokenEnd = stateSize + state.readUInt16BE(85);
  const text =
    state[2]! & flag.hasText
      ? state.toString('utf8', tokenEnd + state.readUInt16BE(87), state.length)
      : undefined;
  const name = stateOfLetter(state[0]!);
  const hasResult = name === 'completed' && text !== undefined;
  return {
    queue,
    id: idOfKey(id),
    payload: JSON.parse(payload) as JsonValue,
    metadata,
    priority: state.readDoubleBE(19),
    state: name as 'running',
    attempts: state.readUInt32BE(3),
    attemptsMax: state.readUInt32BE(7),
    visibleAt: state.readDoubleBE(27),
    leaseUntil: some(state.readDoubleBE(43)) as number,
    version: state.readDoubleBE(11),
    enqueuedAt,
    startedAt: some(state.readDoubleBE(51)),
    finishedAt: some(state.readDoubleBE(59)),
    result: hasResult ? (JSON.parse(text) as JsonValue) : undefined,
    error: hasResult ? undefined : text,
    trace,
    leaseToken: state.toString('latin1', stateSize, tokenEnd),
  };
}

/** The answer of dequeue_one: state record, id, NUL and body. The record of a first lease ends with its history. */
export function decodeFirstLease(queue: string, packed: Buffer): LeasedMessage {
  const idAt = stateSize + packed.readUInt16BE(85) + packed.readUInt16BE(87);
  const idEnd = packed.indexOf(0, idAt);
  return decodeLeased(queue, packed.toString('utf8', idAt, idEnd), packed.subarray(idEnd + 1), packed);
}

interface EventOwner {
  readonly queue: string;
  readonly id: string;
  readonly metadata: Metadata;
  readonly incarnation: string;
}

function decodeEvent(packed: Buffer, at: number, owner: EventOwner): MessageEvent {
  const from = packed[at] === 45 ? undefined : stateOfLetter(packed[at]!);
  return {
    queue: owner.queue,
    id: owner.id,
    version: packed.readUIntBE(at + 12, 6),
    from,
    to: stateOfLetter(packed[at + 1]!),
    at: packed.readUIntBE(at + 2, 6),
    attempt: packed.readUInt32BE(at + 8),
    metadata: owner.metadata,
    incarnation: owner.incarnation,
  };
}

/** The history of a message, oldest first: the enqueue from its body, the rest from its state record. */
export function decodeHistory(queue: string, id: string, body: Buffer, state: Buffer): MessageEvent[] {
  const { enqueuedAt, head } = readBody(body);
  const { metadata } = decodeHead(head);
  const owner = { queue, id, metadata, incarnation: incarnationOf(body, 0) };
  const events: MessageEvent[] = [];
  if (body[44]! & flag.historyFromStart) {
    const to = body[44]! & flag.beganInvisible ? 'invisible' : 'pending';
    events.push({ ...owner, version: 1, from: undefined, to, at: enqueuedAt, attempt: 0 });
  }
  if (state.length === 0) return events;
  const start = stateSize + state.readUInt16BE(85);
  const end = start + state.readUInt16BE(87);
  for (let at = start; at < end; at += eventSize) events.push(decodeEvent(state, at, owner));
  return events;
}

/** Events of a call: record key, packed event with the number behind it, head; and so on. */
export function decodeEvents(queue: string, parts: readonly Buffer[]): MessageEvent[] {
  const events: MessageEvent[] = [];
  for (let index = 0; index < parts.length; index += 3) {
    const packed = parts[index + 1]!;
    const { metadata } = decodeHead(parts[index + 2]!.toString());
    events.push(
      decodeEvent(packed, 0, {
        queue,
        id: idOfKey(parts[index]!.toString()),
        metadata,
        incarnation: incarnationOf(packed, eventSize),
      }),
    );
  }
  return events;
}

/** One answer of 18 bytes: a letter, the state, the version, and the lease's end or -1. */
export interface PackedAnswer {
  readonly letter: string;
  readonly state: MessageState;
  readonly version: number;
  readonly leaseUntil: number | undefined;
}

export function decodeAnswers(packed: Buffer): PackedAnswer[] {
  const answers: PackedAnswer[] = [];
  for (let at = 0; at < packed.length; at += 18) {
    answers.push({
      letter: String.fromCharCode(packed[at]!),
      state: stateOfLetter(packed[at + 1]!),
      version: packed.readDoubleBE(at + 2),
      leaseUntil: some(packed.readDoubleBE(at + 10)),
    });
  }
  return answers;
}
