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
const lateMax = 32;

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
  /** Bundles that hold some of it and are not answered. */
  open: number;
  failure: unknown;
}

/** A part in a call, and whom its entries are told. */
interface RoundPart extends PushPart {
  readonly of: Waiting;
}

interface RoundCall {
  readonly slot: number;
  readonly groups: readonly Group<RoundPart>[];
}

/** Calls that go out as one pipeline: small ones, as those of the many slots of a Cluster are, or a full one alone. */
interface Bundle {
  readonly calls: RoundCall[];
  entries: number;
  readonly pushes: Set<Waiting>;
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
      lane.waiting.push({ parts, bounds, pushed, settle, open: 0, failure: undefined });
      this.#plan(lane);
    });
  }

  /** Those that come in the same turn of the loop go together. */
  #plan(lane: Lane): void {
    if (lane.isPlanned || lane.waiting.length === 0 || lane.inFlight >= inFlightMax) return;
    lane.isPlanned = true;
    setImmediate(() => {
      lane.isPlanned = false;
      this.#serve(lane);
    });
  }

  #serve(lane: Lane): void {
    const [first] = lane.waiting;
    if (first === undefined) return;
    const { bounds } = first;
    const taken = lane.waiting.filter((waiting) => isEqual(waiting.bounds, bounds));
    lane.waiting = lane.waiting.filter((waiting) => !taken.includes(waiting));
    const bundles = bundlesOf(callsOf(taken));
    for (const { pushes } of bundles) for (const push of pushes) push.open += 1;
    for (const push of taken) if (push.open === 0) push.settle();
    for (const bundle of bundles) void this.#send(lane, bundle, bounds);
    this.#plan(lane);
  }

  /** A push is told as soon as all that is its own is answered, whatever else was joined with it. */
  async #send(lane: Lane, { calls, entries, pushes }: Bundle, bounds: ListBounds): Promise<void> {
    lane.inFlight += entries;
    let failure: unknown;
    try {
      await this.#round(calls, bounds);
    } catch (error) {
      failure = error;
    }
    lane.inFlight -= entries;
    for (const push of pushes) {
      push.failure ??= failure;
      push.open -= 1;
      if (push.open === 0) push.settle(push.failure);
    }
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
  for (const of of taken) {
    for (const part of of.parts) {
      const held = bySlot.get(part.prefix);
      if (held) held.push({ ...part, of });
      else bySlot.set(part.prefix, [{ ...part, of }]);
    }
  }
  return [...bySlot.values()].flatMap((parts) =>
    cutGroups(groupsOf(parts), { from: 0, entriesMax: entriesPerCall }).map((groups) => ({
      slot: parts[0]!.slot,
      groups,
    })),
  );
}

function bundlesOf(calls: readonly RoundCall[]): Bundle[] {
  const bundles: Bundle[] = [];
  for (const call of calls) {
    const entries = entriesOf(call.groups, Number.POSITIVE_INFINITY);
    let bundle = bundles.at(-1);
    if (bundle === undefined || bundle.entries + entries > entriesPerCall) {
      bundle = { calls: [], entries: 0, pushes: new Set() };
      bundles.push(bundle);
    }
    bundle.calls.push(call);
    bundle.entries += entries;
    for (const { parts } of call.groups) for (const { of } of parts) bundle.pushes.add(of);
  }
  return bundles;
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
    for (const { of } of parts) {
      of.pushed.written += counts[at] ?? 0;
      of.pushed.late += counts[at + 1] ?? 0;
      at += 2;
      told.add(of.pushed);
    }
  }
  for (const pushed of told) {
    pushed.calls += 1;
    pushed.servers.add(server);
  }
}
