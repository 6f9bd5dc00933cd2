/**
 * Watches a stream of follows go by and keeps what the demo needs of it: a fair sample of accounts, and the most
 * followed one with a follower. Memory is bounded: beyond the bound new followees are no longer counted.
 */
export interface WorldSample {
  readonly accounts: readonly string[];
  readonly mostFollowed: string;
  readonly reader: string;
}

export interface Sampler {
  watch(
    pairs: AsyncIterable<readonly [string, string]> | Iterable<readonly [string, string]>,
  ): AsyncIterable<readonly [string, string]>;
  /** Undefined when nothing has gone by. */
  sample(): WorldSample | undefined;
}

const accountsMax = 1_000;
const countedMax = 200_000;

export function createSampler(random: () => number = Math.random): Sampler {
  const reservoir: string[] = [];
  const followersOf = new Map<string, { count: number; follower: string }>();
  let seen = 0;

  const keep = (account: string): void => {
    seen += 1;
    if (reservoir.length < accountsMax) reservoir.push(account);
    else {
      const place = Math.floor(random() * seen);
      if (place < accountsMax) reservoir[place] = account;
    }
  };
  const count = (follower: string, followee: string): void => {
    if (follower === followee) return;
    const known = followersOf.get(followee);
    if (known) known.count += 1;
    else if (followersOf.size < countedMax) followersOf.set(followee, { count: 1, follower });
  };

  return {
    async *watch(pairs) {
      for await (const pair of pairs) {
        keep(pair[0]);
        keep(pair[1]);
        count(pair[0], pair[1]);
        yield pair;
      }
    },
    sample() {
      let best: { account: string; count: number; follower: string } | undefined;
      for (const [account, { count: followers, follower }] of followersOf) {
        if (!best || followers > best.count) best = { account, count: followers, follower };
      }
      if (!best) return undefined;
      return { accounts: [...new Set(reservoir)], mostFollowed: best.account, reader: best.follower };
    },
  };
}
