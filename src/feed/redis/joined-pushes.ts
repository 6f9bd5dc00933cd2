/**
 * Pushes that are in hand at once go out together, so that a timeline takes its new posts in their order and in one command:
 * an entry that arrives behind a newer one costs several times as much. What arrives while enough is on its way to a node is
 * the next round of calls. Guarantees: no call carries more than 1,000 entries; a push fails only for its own node.
 */
import type { Redis } from 'ioredis';
import type { ListBounds } from '../timeline-lists.js';
import type { Call, ScriptCaller } from './caller.js';
import { unavailable } from './connection.js';
import { cutGroups, entriesOf, type Group, groupsOf } from './push-groups.js';

/** No call carries more; about a millisecond of the server. */
const entriesPerCall = 1_000;
/** Another round is begun while fewer are on their way, so that the server has work while this process reads its answers. */
const inFlightMax = 2_000;
/** Insertions behind newer entries that a call makes before it lets others through. */
const lateMax = 50;

/** A post for those of its readers whose timelines are in one slot. */
export interface PushPart {
  readonly post: string;
  readonly slot: number;
  /** Of the keys. */
  readonly prefix: string;
  readonly readers: readonly string[];
}

export interface PartsPushed {
  written: number;
  late: number;
  calls: number;
  readonly servers: Set<string>;
}

interface Waiting {
  readonly parts: readonly PushPart[];
  readonly bounds: ListBounds;
  readonly pushed: PartsPushed;
  readonly settle: (error?: unknown) => void;
}

/** A part in a round, and whom its entries are told. */
export interface RoundPart extends PushPart {
  readonly pushed: PartsPushed;
}

interface RoundCall {
  readonly slot: number;
  readonly groups: readonly Group<RoundPart>[];
}

/** What goes to one node. */
interface Lane {
  waiting: Waiting[];
  /** Entries on their way. */
  inFlight: number;
  isPlanned: boolean;
}

export class JoinedPushes {
  readonly #caller: ScriptCaller;
  readonly #lanes = new WeakMap<Redis, Lane>();

  constructor(caller: ScriptCaller) {
    this.#caller = caller;
  }

  /** All parts are of slots that this node serves. */
  push(node: Redis, parts: readonly PushPart[], bounds: ListBounds): Promise<PartsPushed> {
    return new Promise((resolve, reject) => {
      const pushed: PartsPushed = { written: 0, late: 0, calls: 0, servers: new Set() };
      const settle = (error?: unknown) => (error === undefined ? resolve(pushed) : reject(error as Error));
      const lane = this.#lanes.get(node) ?? { waiting: [], inFlight: 0, isPlanned: false };
      this.#lanes.set(node, lane);
      lane.waiting.push({ parts, bounds, pushed, settle });
      this.#plan(lane);
    });
  }

  /** Those that come in the same turn of the loop go together. */
  #plan(lane: Lane): void {
    if (lane.isPlanned || lane.waiting.length === 0 || lane.inFlight >= inFlightMax) return;
    lane.isPlanned = true;
    setImmediate(() => {
      lane.isPlanned = false;
      void this.#serve(lane);
    });
  }

  async #serve(lane: Lane): Promise<void> {
    const [first] = lane.waiting;
    if (first === undefined) return;
    const { bounds } = first;
    const taken = lane.waiting.filter((waiting) => isEqual(waiting.bounds, bounds));
    lane.waiting = lane.waiting.filter((waiting) => !taken.includes(waiting));
    const entries = taken.flatMap(({ parts }) => parts).reduce((sum, { readers }) => sum + readers.length, 0);
    lane.inFlight += entries;
    this.#plan(lane);
    let failure: unknown;
    try {
      await this.#round(callsOf(taken), bounds);
    } catch (error) {
      failure = error;
    }
    lane.inFlight -= entries;
    for (const { settle } of taken) settle(failure);
    this.#plan(lane);
  }

  async #round(calls: readonly RoundCall[], { entriesMax, slack }: ListBounds): Promise<void> {
    let waiting = calls;
    while (waiting.length > 0) {
      const answers = await this.#caller.callAll(waiting.map((call) => scriptCall(call, entriesMax, slack)));
      const rest: RoundCall[] = [];
      for (const [index, { reply, server }] of answers.entries()) {
        const call = waiting[index]!;
        const [done = 0, ...counts] = reply as number[];
        // Entries on an unknown server could not be found missing later.
        if (server === undefined) throw unavailable('the connection broke during a call');
        tellParts(call, counts, server);
        // What is left goes in pieces of the size that was done: sent again whole each time, every key would go ten times.
        const { slot, groups } = call;
        const size = { from: done, entriesMax: Math.max(entriesOf(groups, done), lateMax) };
        for (const piece of cutGroups(groups, size)) rest.push({ slot, groups: piece });
      }
      waiting = rest;
    }
  }
}

function isEqual(one: ListBounds, other: ListBounds): boolean {
  return one.entriesMax === other.entriesMax && one.slack === other.slack;
}

/** The waiting pushes as calls, each for one slot. */
function callsOf(taken: readonly Waiting[]): RoundCall[] {
  const bySlot = new Map<string, RoundPart[]>();
  for (const { parts, pushed } of taken) {
    for (const part of parts) {
      const held = bySlot.get(part.prefix);
      if (held) held.push({ ...part, pushed });
      else bySlot.set(part.prefix, [{ ...part, pushed }]);
    }
  }
  return [...bySlot.values()].flatMap((parts) =>
    cutGroups(groupsOf(parts), { from: 0, entriesMax: entriesPerCall }).map((groups) => ({
      slot: parts[0]!.slot,
      groups,
    })),
  );
}

function scriptCall({ slot, groups }: RoundCall, entriesMax: number, slack: number): Call {
  const args: (string | number)[] = [entriesMax, slack, lateMax];
  const keys: string[] = [];
  for (const group of groups) {
    args.push(group.keys.length, group.parts.length);
    for (const { post } of group.parts) args.push(post);
    for (const key of group.keys) keys.push(key);
  }
  return { script: 'push', slot, keys, args };
}

/** `counts` are pairs: written, and late among them, for each post of each group. */
function tellParts({ groups }: RoundCall, counts: readonly number[], server: string): void {
  const told = new Set<PartsPushed>();
  let at = 0;
  for (const { parts } of groups) {
    for (const { pushed } of parts) {
      pushed.written += counts[at] ?? 0;
      pushed.late += counts[at + 1] ?? 0;
      at += 2;
      told.add(pushed);
    }
  }
  for (const pushed of told) {
    pushed.calls += 1;
    pushed.servers.add(server);
  }
}
