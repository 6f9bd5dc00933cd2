/** Which timelines take the same posts: pushes that were joined, put together anew by reader, and cut into calls. */

export interface Pushing {
  readonly post: string;
  /** Of the keys; the same for all that are grouped. */
  readonly prefix: string;
  readonly readers: readonly string[];
}

export interface Group<Part> {
  readonly keys: readonly string[];
  /** Oldest post first, each post once. */
  readonly parts: readonly Part[];
}

/** Each reader is in one group, unless all are of one post. Of two pushes of the same post the first one counts where both have the reader. */
export function groupsOf<Part extends Pushing>(pushes: readonly Part[]): Group<Part>[] {
  const [only] = pushes;
  if (only === undefined) return [];
  const keysOf = (readers: readonly string[]) => readers.map((reader) => only.prefix + reader);
  const ordered = pushes.toSorted((one, other) => (one.post < other.post ? -1 : 1));
  const isAlike = ordered.every(
    ({ readers, post }, at) => readers === only.readers && post !== ordered[at - 1]?.post,
  );
  if (isAlike) return [{ keys: keysOf(only.readers), parts: ordered }];
  // Nothing to join: a reader who is in two of them is found to have the post.
  if (pushes.every(({ post }) => post === only.post))
    return pushes.map((part) => ({ keys: keysOf(part.readers), parts: [part] }));
  const groups: { readonly readers: string[]; readonly parts: readonly Part[] }[] = [];
  const groupOf = new Map<string, number>();
  for (const part of ordered) {
    // Readers move from the group of what they took before to the one that takes this post too.
    const moves = new Map<number, number>();
    for (const reader of part.readers) {
      const from = groupOf.get(reader) ?? -1;
      let to = moves.get(from);
      if (to === undefined) {
        const before = groups[from]?.parts ?? [];
        const isTaken = before.at(-1)?.post === part.post;
        to = isTaken ? from : groups.push({ readers: [], parts: [...before, part] }) - 1;
        moves.set(from, to);
      }
      groupOf.set(reader, to);
    }
  }
  for (const [reader, group] of groupOf) groups[group]?.readers.push(reader);
  return groups
    .filter(({ readers }) => readers.length > 0)
    .map(({ readers, parts }) => ({ keys: keysOf(readers), parts }));
}

/** What follows the first `from` keys, in pieces of at most `entriesMax` entries; a key's entries stay together. */
export function cutGroups<Part>(
  groups: readonly Group<Part>[],
  { from, entriesMax }: { from: number; entriesMax: number },
): Group<Part>[][] {
  const pieces: Group<Part>[][] = [];
  let [skipped, room] = [from, 0];
  for (const { keys, parts } of groups) {
    let at = Math.min(skipped, keys.length);
    skipped -= at;
    while (at < keys.length) {
      let piece = pieces.at(-1);
      if (piece === undefined || room < parts.length) {
        piece = [];
        pieces.push(piece);
        room = entriesMax;
      }
      const count = Math.max(1, Math.floor(room / parts.length));
      const taken = keys.slice(at, at + count);
      piece.push({ keys: taken, parts });
      at += taken.length;
      room -= taken.length * parts.length;
    }
  }
  return pieces;
}

/** Entries of the first `keys` keys. */
export function entriesOf<Part>(groups: readonly Group<Part>[], keys: number): number {
  let [entries, left] = [0, keys];
  for (const group of groups) {
    const taken = Math.min(left, group.keys.length);
    entries += taken * group.parts.length;
    left -= taken;
  }
  return entries;
}
