/**
 * Bulk import of a follow graph as a stream: many moderate transactions, so that other calls are answered in between and
 * memory holds one batch. Importing the same again creates nothing.
 */
import { invalidInput } from '../errors.js';
import type { ImportProgress } from './account.js';
import type { FeedContext } from './context.js';
import type { Feed } from './feed.js';
import { sweepModes } from './housekeeping.js';
import { accountId } from './validate.js';
import { rebuildMessage } from './work.js';

/** Pairs of one transaction, each of which becomes a row: some 100 ms on the embedded database. */
const pairsPerBatch = 5_000;

/** Numbers of accounts that an import remembers; beyond, it begins to learn them anew. Some 20 MB. */
const numbersMax = 200_000;

interface Batch {
  readonly pairs: (readonly [string, string])[];
  readonly seen: Set<string>;
}

const emptyBatch = (): Batch => ({ pairs: [], seen: new Set() });

/** False when the pair stands in the batch already. */
function addPair({ pairs, seen }: Batch, pair: readonly [string, string]): boolean {
  const key = `${pair[0]}\0${pair[1]}`;
  if (seen.has(key)) return false;
  seen.add(key);
  pairs.push(pair);
  return true;
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
    const numbers = new Map<string, string>();
    let batch = emptyBatch();
    const flush = async () => {
      if (batch.pairs.length > 0) await writeBatch(context, { pairs: batch.pairs, numbers, progress });
      batch = emptyBatch();
      onProgress?.({ ...progress });
    };
    for await (const pair of pairs) {
      progress.read += 1;
      const [follower, followee] = parsePair(pair, progress.read);
      if (follower === followee) progress.selfFollows += 1;
      else if (!addPair(batch, [follower, followee])) progress.known += 1;
      if (batch.pairs.length >= pairsPerBatch) await flush();
      if (signal?.aborted) throw signal.reason;
    }
    await flush();
    // Modes follow the new counts at once, in as many steps as there are.
    while (!(await sweepModes(context)));
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

interface BatchToWrite {
  readonly pairs: Batch['pairs'];
  /** Known so far, by id. */
  readonly numbers: Map<string, string>;
  readonly progress: Mutable<ImportProgress>;
}

async function writeBatch(context: FeedContext, { pairs, numbers, progress }: BatchToWrite): Promise<void> {
  const { database, store } = context;
  if (numbers.size > numbersMax) numbers.clear();
  const ids = [...new Set(pairs.flat())];
  // Accounts that another import makes at the same moment are seen by the second look.
  for (let look = 0; look < 2; look += 1) {
    const unknown = ids.filter((id) => !numbers.has(id));
    if (unknown.length === 0) break;
    const learned = await store.accountNumbers(database, { ids: unknown, now: context.now() });
    for (const [id, number] of learned.numbers) numbers.set(id, number);
    progress.accountsCreated += learned.created;
  }
  const followers: string[] = [];
  const followees: string[] = [];
  for (const pair of pairs) {
    const [follower, followee] = [numbers.get(pair[0]), numbers.get(pair[1])];
    // An account that is being erased takes no follows.
    if (follower === undefined || followee === undefined) continue;
    followers.push(follower);
    followees.push(followee);
  }
  const written = await database.transaction(async (transaction) => {
    const written = await store.importFollows(transaction, { followers, followees, now: context.now() });
    if (written.dropped.length > 0) await context.enqueue(written.dropped.map(rebuildMessage), transaction);
    return written;
  });
  progress.created += written.created;
  progress.blocked += written.blocked;
  progress.known += pairs.length - written.created - written.blocked;
}
