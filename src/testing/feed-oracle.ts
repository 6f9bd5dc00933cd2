/**
 * The oracle of the feed: what a home must show, by brute force over everything that was ever done. It knows nothing of
 * timelines, modes or fan-out; a random world and a page-by-page walk are compared with it.
 */
export interface OraclePost {
  readonly id: string;
  readonly author: string;
  readonly visibility: 'public' | 'followers';
  readonly repostOf: string | undefined;
  deleted: boolean;
}

/** An active follow, or the post id up to which a kept history reaches. */
type Follow = { readonly keptUntil: bigint | undefined };

export class FeedOracle {
  readonly posts = new Map<string, OraclePost>();
  readonly #follows = new Map<string, Map<string, Follow>>();
  readonly #blocks = new Set<string>();
  readonly #mutes = new Set<string>();
  readonly #erased = new Set<string>();

  publish(post: Omit<OraclePost, 'deleted'>): void {
    if (!this.posts.has(post.id)) this.posts.set(post.id, { ...post, deleted: false });
  }

  delete(id: string): void {
    const post = this.posts.get(id);
    if (post) post.deleted = true;
  }

  follow(follower: string, followee: string): void {
    if (follower === followee || this.#blockBetween(follower, followee)) return;
    if (this.#followOf(follower, followee)?.keptUntil === undefined && this.follows(follower, followee))
      return;
    const followees = this.#follows.get(follower) ?? new Map<string, Follow>();
    this.#follows.set(follower, followees.set(followee, { keptUntil: undefined }));
  }

  /** `keptUntil`: public posts up to this id stay. */
  unfollow(follower: string, followee: string, keptUntil?: bigint): void {
    if (!this.follows(follower, followee) && keptUntil !== undefined) return;
    if (keptUntil === undefined) this.#follows.get(follower)?.delete(followee);
    else this.#follows.get(follower)?.set(followee, { keptUntil });
  }

  follows(follower: string, followee: string): boolean {
    const follow = this.#followOf(follower, followee);
    return follow !== undefined && follow.keptUntil === undefined;
  }

  block(blocker: string, blocked: string): void {
    this.#blocks.add(pair(blocker, blocked));
    this.#follows.get(blocker)?.delete(blocked);
    this.#follows.get(blocked)?.delete(blocker);
  }

  unblock(blocker: string, blocked: string): void {
    this.#blocks.delete(pair(blocker, blocked));
  }

  mute(muter: string, muted: string): void {
    this.#mutes.add(pair(muter, muted));
  }

  unmute(muter: string, muted: string): void {
    this.#mutes.delete(pair(muter, muted));
  }

  erase(account: string): void {
    this.#erased.add(account);
  }

  /** Ids of the posts that the home of `reader` shows, in order: newest place first. */
  home(reader: string): string[] {
    const live = [...this.posts.values()].filter((post) => this.#lives(post));
    const places = new Map<string, bigint>();
    for (const post of live) {
      if (post.repostOf === undefined && this.#belongs(reader, post) && !this.#hidden(reader, post.author)) {
        places.set(post.id, BigInt(post.id));
      }
    }
    for (const repost of live) {
      const original = repost.repostOf === undefined ? undefined : this.posts.get(repost.repostOf);
      if (!original || !this.#showsByRepost(reader, repost, original)) continue;
      const place = places.get(original.id);
      const own = this.#belongsToAuthor(reader, original);
      if (!own && (place === undefined || BigInt(repost.id) < place))
        places.set(original.id, BigInt(repost.id));
    }
    return [...places].sort(([, a], [, b]) => (a < b ? 1 : -1)).map(([id]) => id);
  }

  #lives(post: OraclePost): boolean {
    return !post.deleted && !this.#erased.has(post.author);
  }

  #showsByRepost(reader: string, repost: OraclePost, original: OraclePost): boolean {
    return (
      this.#lives(original) &&
      original.visibility === 'public' &&
      this.#belongs(reader, repost) &&
      !this.#hidden(reader, repost.author) &&
      !this.#hidden(reader, original.author)
    );
  }

  /** The original has a place of its own, whether or not it is shown there. */
  #belongsToAuthor(reader: string, post: OraclePost): boolean {
    if (post.author === reader) return true;
    const follow = this.#followOf(reader, post.author);
    return follow !== undefined && (follow.keptUntil === undefined || BigInt(post.id) <= follow.keptUntil);
  }

  #belongs(reader: string, post: OraclePost): boolean {
    if (!this.#belongsToAuthor(reader, post)) return false;
    const follow = this.#followOf(reader, post.author);
    return post.author === reader || follow?.keptUntil === undefined || post.visibility === 'public';
  }

  #hidden(reader: string, author: string): boolean {
    return this.#mutes.has(pair(reader, author)) || this.#blockBetween(reader, author);
  }

  #blockBetween(one: string, other: string): boolean {
    return this.#blocks.has(pair(one, other)) || this.#blocks.has(pair(other, one));
  }

  #followOf(follower: string, followee: string): Follow | undefined {
    return this.#follows.get(follower)?.get(followee);
  }
}

function pair(one: string, other: string): string {
  return `${one}\0${other}`;
}
