/**
 * The port of timelines that are kept outside the database: per reader a bounded list of post ids, newest first, with a
 * marker that names the build it belongs to and its floor. Invariants: a list holds each id once and in order; ids at or
 * below the floor are never in it; a reader without a list gets nothing; a list is never changed halfway. What the lists
 * hold may be lost at any time: the database decides whether a list is believed, by token and server.
 */
import type { Queryable } from '../database/index.js';
import type { Component } from '../lifecycle.js';
import type { FanOutLane } from './operate.js';
import type { AccountNumber, Now } from './store.js';

export interface ListBounds {
  /** Entries a list keeps; it is trimmed when `slack` over. */
  readonly entriesMax: number;
  readonly slack: number;
}

export interface Pushed {
  /** Lists that got the entry and did not have it. */
  readonly written: number;
  /** Of these, entries that had to find their place behind newer ones. */
  readonly late: number;
  /** Calls of the script that this took. */
  readonly calls: number;
  /** Servers that hold the entries now; they are lost if one of these is not trusted any more. */
  readonly servers: readonly string[];
}

export interface ListWindow {
  /** The build that the list belongs to. */
  readonly token: string;
  /** Changes with every change that is not a push. */
  readonly version: string;
  /** Nothing at or below is known to be in the list; '0': everything is. */
  readonly floor: string;
  /** Ids beyond the position, nearest first. */
  readonly ids: readonly string[];
  /** Whether the list goes on behind them. */
  readonly more: boolean;
  /** The server that answered. */
  readonly server: string;
}

export interface ListServer {
  readonly id: string;
  /** Its name for people. */
  readonly address: string;
  /** The time it was last told; 0: never, or it has forgotten. Whatever was written before that it has. */
  readonly beat: number;
}

export interface TimelineLists extends Component {
  readonly name: string;
  /** Puts a post into the lists of those readers who have one, each at its place. */
  push(input: { post: string; readers: readonly AccountNumber[] } & ListBounds): Promise<Pushed>;
  /** An empty list in place of whatever was there, unless a later build has begun. It takes entries from now on. */
  begin(input: { reader: AccountNumber; token: string; keptMs: number }): Promise<void>;
  /**
   * Puts ids (newest first) into the list of this build and raises its floor; answers how many are new and the version since, and undefined when
   * there is no such list. What does not fit raises the floor further.
   */
  merge(input: {
    reader: AccountNumber;
    token: string;
    ids: readonly string[];
    floor: string;
    entriesMax: number;
    keptMs: number;
  }): Promise<{ readonly added: number; readonly version: string; readonly server: string } | undefined>;
  /** Entries beyond a position; undefined: no list that could be read. */
  read(input: {
    reader: AccountNumber;
    position: string;
    older: boolean;
    count: number;
  }): Promise<ListWindow | undefined>;
  /** Takes ids out, if the list is still of that token and version; answers how many. */
  remove(input: {
    reader: AccountNumber;
    token: string;
    version: string;
    ids: readonly string[];
  }): Promise<number>;
  /** Takes lists away. */
  drop(readers: readonly AccountNumber[]): Promise<void>;
  /** Keeps the list for so long from now. */
  renew(input: { reader: AccountNumber; keptMs: number }): Promise<void>;
  /** Some readers with lists after `position` ('0': from the start), and where that stopped; undefined at the end. */
  scan(
    position: string,
  ): Promise<{ readonly readers: readonly AccountNumber[]; readonly position: string | undefined }>;
  /** Whether all servers are connected, as far as that is known without asking. */
  isConnected(): boolean;
  /** Bytes that all lists take, estimated from a bounded sample. */
  bytes(): Promise<number>;
  /** Entries of these readers' lists together. */
  count(readers: readonly AccountNumber[]): Promise<number>;
  /** All servers that take entries now, asked just now. Throws when one does not answer. */
  servers(): Promise<ListServer[]>;
  /** Tells all servers the time of the database. */
  beat(now: number): Promise<void>;
  /** Whether this process has been connected to that server before. */
  hasKnown(server: string): Promise<boolean>;
  /** Into how many buckets the readers shall be spread; `known`: as they have been until now. */
  bucketsWanted(known: number | undefined): Promise<number>;
  /** The number that all processes of this database use. Called before anything else is. */
  useBuckets(count: number): void;
}

/** What has become of the servers that hold timelines. */
export type ServersState =
  /** As before. */
  | { readonly kind: 'trusted' }
  /** Others than before: what they may have lost is to be written again (`adoptServers`). */
  | { readonly kind: 'new'; readonly servers: readonly ListServer[] }
  /** Others than before, and it is not known yet whether somebody still works with those. */
  | { readonly kind: 'waiting' }
  /** Somebody works with others: two installations in one database. */
  | { readonly kind: 'elsewhere'; readonly servers: readonly string[] }
  /** They do not answer. */
  | { readonly kind: 'away'; readonly error: unknown };

/** A store whose timelines are outside the database; its operations on them run with no transaction open. */
export interface ApartTimelines {
  /** Of what keeps them, such as `redis`. */
  readonly name: string;
  /** Whether all servers are connected, as far as that is known without asking. */
  isConnected(): boolean;
  /** Looks who holds the timelines, and lets go what they cannot lose any more. */
  checkServers(on: Queryable, input: { now: Now }): Promise<ServersState>;
  /**
   * Trusts these servers from now on and no others. What was written lately is due again: answers the fan-outs, which count as
   * overdue at once; timelines filled in other ways are built anew. Runs in a transaction.
   */
  adoptServers(
    on: Queryable,
    input: { servers: readonly ListServer[]; lagMaxMs: number; now: Now },
  ): Promise<readonly { readonly post: string; readonly lane: FanOutLane }[]>;
}
