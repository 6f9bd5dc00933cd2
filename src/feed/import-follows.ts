/**
 * Bulk import of a follow graph as a stream: many moderate transactions, so that other calls are answered in between and
 * memory holds one batch. Importing the same again creates nothing.
 */
import { invalidInput } from '../errors.js';
import type { ImportProgress } from './account.js';
import type { FeedContext } from './context.js';
import type { Feed } from './feed.js';
import { foldAll } from './housekeeping.js';
import { accountId } from './validate.js';
import { rebuildMessage } from './work.js';

/** Pairs of one transaction, each of which becomes a row: some 100 ms on the embedded database. */
const pairsPerBatch = 5_000;

class Batch {
  readonly #indexes = new Map<string, number>();
  readonly #seen = new Set<number>();
  readonly followers: number[] = [];
  readonly followees: number[] = [];

  get ids(): string[] {
    return [...this.#indexes.keys()];
  }

  /** False when the pair stands in the batch already. */
  add(follower: string, followee: string): boolean {
    const [from, to] = [this.#indexOf(follower), this.#indexOf(followee)];
    const pair = from * 4 * pairsPerBatch + to;
    if (this.#seen.has(pair)) return false;
    this.#seen.add(pair);
    this.followers.push(from);
    this.followees.push(to);
    return true;
  }

  #indexOf(id: string): number {
    const known = this.#indexes.get(id);
    if (known !== undefined) return known;
    this.#indexes.set(id, this.#indexes.size);
    return this.#indexes.size - 1;
  }
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

export function importFollowsMethod(context: FeedContext): Feed['importFollows'] {
  return async (pairs, { onProgress, signal } = {}) => {
    const progress: Mutable<ImportProgress> = {
      read: 0,
      created: 0,
      known: 0,
      selfFollows: 0,
      blocked: 0,
      accountsCreated: 0,
    };
    let batch = new Batch();
    const flush = async () => {
      if (batch.followers.length > 0) await writeBatch(context, batch, progress);
      batch = new Batch();
      onProgress?.({ ...progress });
    };
    for await (const pair of pairs) {
      progress.read += 1;
      const [follower, followee] = parsePair(pair, progress.read);
      if (follower === followee) progress.selfFollows += 1;
      else if (!batch.add(follower, followee)) progress.known += 1;
      if (batch.followers.length >= pairsPerBatch) await flush();
      if (signal?.aborted) throw signal.reason;
    }
    await flush();
    await context.store.analyze(context.database);
    return progress;
  };
}

function parsePair(pair: unknown, number: number): readonly [string, string] {
  if (!Array.isArray(pair) || pair.length !== 2) {
    throw invalidInput(`pair ${number}`, pair, 'a pair of [follower, followee]');
  }
  const [follower, followee] = pair as readonly unknown[];
  return [
    accountId(`follower of pair ${number}`, follower),
    accountId(`followee of pair ${number}`, followee),
  ];
}

async function writeBatch(
  context: FeedContext,
  batch: Batch,
  progress: Mutable<ImportProgress>,
): Promise<void> {
  const { database, store } = context;
  const { ids, followers, followees } = batch;
  const written = await database.transaction(async (transaction) => {
    const input = { ids, followers, followees, now: context.now() };
    const written = await store.importFollows(transaction, input);
    if (written.dropped.length > 0) await context.enqueue(written.dropped.map(rebuildMessage), transaction);
    return written;
  });
  progress.created += written.created;
  progress.blocked += written.blocked;
  progress.known += followers.length - written.created - written.blocked;
  progress.accountsCreated += written.accountsCreated;
  // Counts follow at once, so that the changes waiting to be added never pile up.
  await foldAll(context);
}
