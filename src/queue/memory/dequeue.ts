/** Dequeue in the memory store: sweep what is due, repeat what the request already holds, else take the best. */
import { randomToken } from '../../ids.js';
import type { LeasedMessage, Metadata } from '../message.js';
import type { DequeueRequest } from '../store.js';
import { move, sweep, type MoveContext } from './moves.js';
import { byOrder, pairsOf, type QueueTable, type StoredMessage } from './table.js';
import { matches, toLeased } from './view.js';

export function dequeueFrom(context: MoveContext, request: DequeueRequest): LeasedMessage[] {
  const { table } = context;
  sweep(context, Number.POSITIVE_INFINITY);
  const held = table.requests.get(request.requestId);
  if (held) return [...held].sort(byOrder).map((message) => toLeased(table.name, message));
  if (table.configuration.dequeueBlocked) return [];
  const count = Math.min(request.count, allowance(context));
  const nonce = randomToken();
  const taken: LeasedMessage[] = [];
  for (const message of choose(table, request.where, count)) {
    move(context, message, {
      state: 'running',
      attempts: message.attempts + 1,
      leaseUntil: context.now + (request.leaseMs ?? message.leaseMs ?? table.configuration.leaseMs),
      leaseToken: `${request.requestId}.${nonce}.${message.incarnation}`,
      leaseEnd: undefined,
      requestId: request.requestId,
      startedAt: context.now,
    });
    taken.push(toLeased(table.name, message));
  }
  if (table.configuration.rateLimit && taken.length > 0)
    table.grants.push({ at: context.now, count: taken.length });
  return taken;
}

/** How many more the rate limit lets through now. */
function allowance({ table, now }: MoveContext): number {
  const limit = table.configuration.rateLimit;
  if (!limit) return Number.POSITIVE_INFINITY;
  while (table.grants[0] && table.grants[0].at <= now - limit.perMs) table.grants.shift();
  return limit.count - table.grants.reduce((sum, grant) => sum + grant.count, 0);
}

/** The best messages in order; of an exclusivity value at most one, and none of a busy one. */
function choose(table: QueueTable, where: Metadata, count: number): StoredMessage[] {
  const chosen: StoredMessage[] = [];
  const values = new Set<string>();
  for (const message of candidates(table, where)) {
    if (chosen.length >= count) break;
    if (!matches(message.metadata, where) || table.isBusy(message.value)) continue;
    if (message.value !== undefined) {
      if (values.has(message.value)) continue;
      values.add(message.value);
    }
    chosen.push(message);
  }
  return chosen;
}

/** The shortest list that holds every candidate: the rarest pair, else the idle values, else all that wait. */
function candidates(table: QueueTable, where: Metadata): Iterable<StoredMessage> {
  const lists = pairsOf(where).map((pair) => table.pairs.get(pair));
  if (lists.length > 0) {
    if (lists.some((list) => list === undefined)) return [];
    return lists.reduce((rarest, list) => (list!.size < rarest!.size ? list : rarest))!;
  }
  return table.configuration.type.kind === 'exclusive' ? table.idle : table.pending;
}
