/**
 * Names of the store's keys on the client's side: where a queue's keys begin. What lies under them is told in lua/keys.lua.
 * Guarantees: every queue has a hash tag of its own, whatever characters its name has.
 */

/** `{`, `}` and `%` of a name are percent-encoded: a tag ends at the first `}`. `#` is kept for the shards. */
const reserved = /[{}%#]/g;
const encoded = (character: string): string =>
  `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;

/** Names that are kept encoded: every call asks for one. */
const namesMax = 1_000;

export interface Keys {
  /** Of a queue, or of one shard of it. */
  base(queue: string, shard?: number): string;
  /** The two keys that declare a queue or a shard to a function, see lua/keys.lua. */
  declared(queue: string, shard: number): readonly string[];
  /** Set of the names of all queues. */
  readonly queues: string;
  /** Hash of recurring messages: name -> JSON. */
  readonly recurring: string;
  /** Channel of the hints of a queue or a shard. */
  hint(queue: string, shard: number): string;
  /** The queue of a channel. */
  queueOfHint(channel: string): string;
}

export function createKeys(prefix: string): Keys {
  const known = new Map<string, string>();
  const declared = new Map<string, readonly string[]>();
  const encodedName = (queue: string): string => {
    let name = known.get(queue);
    if (name === undefined) {
      name = queue.replace(reserved, encoded);
      if (known.size >= namesMax) known.clear();
      known.set(queue, name);
    }
    return name;
  };
  const base = (queue: string, shard = 0): string =>
    `${prefix}:{${encodedName(queue)}${shard === 0 ? '' : `#${shard}`}}`;
  return {
    base,
    declared: (queue, shard) => {
      const name = shard === 0 ? queue : `${queue}\0${shard}`;
      let keys = declared.get(name);
      if (keys === undefined) {
        const of = base(queue, shard);
        keys = [`${of}:q`, of];
        if (declared.size >= namesMax) declared.clear();
        declared.set(name, keys);
      }
      return keys;
    },
    queues: `${prefix}:queues`,
    recurring: `${prefix}:recurring`,
    hint: (queue, shard) => `${base(queue, shard)}:hint`,
    queueOfHint: (channel) =>
      decodeURIComponent(channel.slice(prefix.length + 2, channel.indexOf('}')).split('#')[0] ?? ''),
  };
}
