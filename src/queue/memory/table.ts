/**
 * What the memory store holds of one queue: its messages and the indexes over them. `place` and `displace` are the only
 * two that touch the indexes, so a message is in exactly those its state calls for.
 */
import type { MessageEvent, MessageState, Metadata } from '../message.js';
import { configurationDefault, type QueueConfiguration } from '../store.js';
import { OrderedSet } from './ordered.js';

/** How the last lease ended: a repeat by its holder gets the same answer. */
export type LeaseEnd = 'complete' | 'fail' | 'release' | 'cancel' | 'expiry';

export interface StoredMessage {
  readonly id: string;
  readonly incarnation: number;
  readonly metadata: Metadata;
  readonly trace: string | undefined;
  readonly uniqueWhileLive: boolean;
  readonly leaseMs: number | undefined;
  readonly enqueuedAt: number;
  /** Of an exclusive queue. */
  readonly value: string | undefined;
  readonly events: MessageEvent[];
  readonly attemptsMax: number;
  payload: string;
  priority: number;
  state: MessageState;
  attempts: number;
  version: number;
  visibleAt: number;
  leaseUntil: number | undefined;
  /** Of the current lease, or of the last one. */
  leaseToken: string | undefined;
  leaseEnd: LeaseEnd | undefined;
  requestId: string | undefined;
  startedAt: number | undefined;
  finishedAt: number | undefined;
  /** When a terminal message is forgotten, or hidden if its token has to be remembered for longer. */
  expiresAt: number;
  /** Kept for its token alone. */
  hidden: boolean;
  result: string | undefined;
  error: string | undefined;
}

/** An exclusivity value: at most one message of it runs. */
interface ExclusiveValue {
  readonly waiting: OrderedSet<StoredMessage>;
  running: StoredMessage | undefined;
  /** The message by which the value stands among the idle ones. */
  head: StoredMessage | undefined;
}

export const byOrder = (a: StoredMessage, b: StoredMessage) =>
  a.priority - b.priority || a.incarnation - b.incarnation;
const dueAt = (message: StoredMessage) =>
  message.state === 'running' ? (message.leaseUntil ?? 0) : message.visibleAt;
const byDue = (a: StoredMessage, b: StoredMessage) => dueAt(a) - dueAt(b) || a.incarnation - b.incarnation;
const byExpiry = (a: StoredMessage, b: StoredMessage) =>
  a.expiresAt - b.expiresAt || a.incarnation - b.incarnation;

export const pairsOf = (metadata: Metadata): string[] =>
  Object.entries(metadata).map((pair) => JSON.stringify(pair));

export class QueueTable {
  readonly name: string;
  configuration: QueueConfiguration = configurationDefault;
  /** Every message whose id is known. */
  readonly known = new Map<string, StoredMessage>();
  /** Terminal messages whose id is free again, by lease token: their holders may still repeat themselves. */
  readonly departed = new Map<string, StoredMessage>();
  readonly pending = new OrderedSet<StoredMessage>(byOrder);
  readonly invisible = new OrderedSet<StoredMessage>(byDue);
  readonly running = new OrderedSet<StoredMessage>(byDue);
  readonly terminal = new OrderedSet<StoredMessage>(byExpiry);
  readonly pairs = new Map<string, OrderedSet<StoredMessage>>();
  readonly values = new Map<string, ExclusiveValue>();
  /** The best waiting message of each value without a running one. */
  readonly idle = new OrderedSet<StoredMessage>(byOrder);
  readonly requests = new Map<string, Set<StoredMessage>>();
  /** What was handed out lately, for the rate limit. */
  readonly grants: { at: number; count: number }[] = [];

  constructor(name: string) {
    this.name = name;
  }

  get isEmpty(): boolean {
    return this.pending.size + this.invisible.size + this.running.size === 0;
  }

  /** Puts a message into the indexes of its state. */
  place(message: StoredMessage): void {
    const { state } = message;
    if (state === 'pending') {
      this.pending.add(message);
      for (const pair of pairsOf(message.metadata)) this.#pair(pair).add(message);
    } else if (state === 'invisible') this.invisible.add(message);
    else if (state === 'running') {
      this.running.add(message);
      this.#request(message.requestId!).add(message);
    } else this.terminal.add(message);
    if (message.value !== undefined) this.#placeValue(message, message.value);
  }

  /** Takes a message out of the indexes; called before anything they sort by changes. */
  displace(message: StoredMessage): void {
    const { state } = message;
    if (state === 'pending') {
      this.pending.delete(message);
      for (const pair of pairsOf(message.metadata)) {
        const waiting = this.#pair(pair);
        waiting.delete(message);
        if (waiting.size === 0) this.pairs.delete(pair);
      }
    } else if (state === 'invisible') this.invisible.delete(message);
    else if (state === 'running') {
      this.running.delete(message);
      const request = this.#request(message.requestId!);
      request.delete(message);
      if (request.size === 0) this.requests.delete(message.requestId!);
    } else this.terminal.delete(message);
    if (message.value !== undefined) this.#displaceValue(message, message.value);
  }

  isBusy(value: string | undefined): boolean {
    return value !== undefined && this.values.get(value)?.running !== undefined;
  }

  #placeValue(message: StoredMessage, name: string): void {
    const value = this.values.get(name) ?? {
      waiting: new OrderedSet(byOrder),
      running: undefined,
      head: undefined,
    };
    this.values.set(name, value);
    if (message.state === 'pending') value.waiting.add(message);
    if (message.state === 'running') value.running = message;
    this.#settleValue(name, value);
  }

  #displaceValue(message: StoredMessage, name: string): void {
    const value = this.values.get(name);
    if (!value) return;
    value.waiting.delete(message);
    if (value.running === message) value.running = undefined;
    if (value.head === message) {
      this.idle.delete(message);
      value.head = undefined;
    }
    this.#settleValue(name, value);
  }

  #settleValue(name: string, value: ExclusiveValue): void {
    const head = value.running ? undefined : value.waiting.first;
    if (head !== value.head) {
      if (value.head) this.idle.delete(value.head);
      if (head) this.idle.add(head);
      value.head = head;
    }
    if (!value.running && value.waiting.size === 0) this.values.delete(name);
  }

  #pair(pair: string): OrderedSet<StoredMessage> {
    const waiting = this.pairs.get(pair) ?? new OrderedSet<StoredMessage>(byOrder);
    this.pairs.set(pair, waiting);
    return waiting;
  }

  #request(requestId: string): Set<StoredMessage> {
    const leases = this.requests.get(requestId) ?? new Set<StoredMessage>();
    this.requests.set(requestId, leases);
    return leases;
  }
}
