/**
 * Calls functions of the library. Guarantees: calls of one turn of the event loop go out as one pipeline (one for each queue in
 * a Cluster); a server that has lost the library, or never had it, gets it and the call is made again; where others must
 * confirm, nothing is answered before they have, and calls that come meanwhile share the next confirmation; errors of the server
 * become errors by name.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { groundError } from '../../errors.js';
import { appendConfirmation, type Confirmation, findUnconfirmed, type Result } from './confirmation.js';
import type { RedisConnection } from './connection.js';
import type { FunctionLibrary } from './library.js';
import { asNamed } from './named-error.js';

type Arguments = readonly (string | number | Buffer)[];
type Read<T> = (reply: unknown) => T | Promise<T>;

interface Call {
  readonly name: string;
  readonly keys: readonly string[];
  readonly args: Arguments;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** How often it has been sent. */
  tries: number;
}

/** A bound for the server's buffers and our own. */
const callsPerPipeline = 256;
/** A call that the server has not begun is sent again, with growing pauses: about 4 s, longer than a slot is on its way. */
const triesMax = 20;
const pauseMs = (tries: number): number => Math.min(300, 20 * tries);

export class FunctionCaller {
  readonly #connection: RedisConnection;
  readonly #library: FunctionLibrary;
  /** Calls of this turn, by queue in a Cluster. */
  readonly #waiting = new Map<string, Call[]>();
  /** Groups that wait for a confirmation. */
  readonly #confirming = new Set<string>();
  #confirmation: Confirmation | undefined;
  #scheduled = false;
  #loading: Promise<void> | undefined;

  constructor(connection: RedisConnection, library: FunctionLibrary) {
    this.#connection = connection;
    this.#library = library;
  }

  /** From now on every call is answered when what it has written or seen is confirmed. */
  require(confirmation: Confirmation): void {
    this.#confirmation = confirmation;
  }

  call(name: string, keys: readonly string[], args: Arguments): Promise<unknown>;
  /** With what the reply stands for, read where it arrives: a promise less. */
  call<T>(name: string, keys: readonly string[], args: Arguments, read: Read<T>): Promise<T>;
  call<T>(name: string, keys: readonly string[], args: Arguments, read?: Read<T>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const settle =
        read === undefined ? resolve : (reply: unknown): void => readTo(read, reply, { resolve, reject });
      this.#enlist({ name, keys, args, resolve: settle, reject, tries: 1 });
    });
  }

  async load(): Promise<void> {
    this.#loading ??= this.#loadEverywhere().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  async #loadEverywhere(): Promise<void> {
    const load = this.#connection
      .primaries()
      .map((node) => node.call('FUNCTION', 'LOAD', 'REPLACE', this.#library.text));
    // A node that is leaving or has become a replica is no reason to wait: who is called and lacks the library says so.
    const results = await Promise.allSettled(load);
    const failure = results.find((result) => result.status === 'rejected');
    if (failure && results.every(({ status }) => status === 'rejected')) throw asNamed(failure.reason);
  }

  #enlist(call: Call): void {
    const group = this.#connection.isCluster ? (call.keys[0] ?? '') : '';
    const calls = this.#waiting.get(group);
    if (calls) calls.push(call);
    else this.#waiting.set(group, [call]);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled || this.#waiting.size === 0) return;
    this.#scheduled = true;
    setImmediate(() => this.#flush());
  }

  #flush(): void {
    this.#scheduled = false;
    for (const [group, calls] of this.#waiting) {
      if (this.#confirmation) {
        this.#confirmNext(group, calls, this.#confirmation);
        continue;
      }
      this.#waiting.delete(group);
      if (calls.length === 1) {
        this.#sendAlone(calls[0]!);
        continue;
      }
      for (let from = 0; from < calls.length; from += callsPerPipeline)
        void this.#send(calls.slice(from, from + callsPerPipeline));
    }
  }

  /** The server does nothing else for a connection that waits: whoever comes meanwhile goes together with the next. */
  #confirmNext(group: string, calls: Call[], confirmation: Confirmation): void {
    if (this.#confirming.has(group)) return;
    this.#confirming.add(group);
    const next = calls.splice(0, callsPerPipeline);
    if (calls.length === 0) this.#waiting.delete(group);
    void this.#send(next, confirmation).finally(() => {
      this.#confirming.delete(group);
      this.#schedule();
    });
  }

  /** Without a promise in between: of a call that does little they would be a good part. */
  #sendAlone(call: Call): void {
    const { name, keys, args } = call;
    this.#connection.client
      .callBuffer('fcall', this.#library.functionName(name), keys.length, ...keys, ...args)
      .then(call.resolve, (error: unknown) => this.#answer(call, [error as Error, undefined], undefined));
  }

  async #send(calls: readonly Call[], confirmation?: Confirmation): Promise<void> {
    try {
      const results = await this.#exchange(calls, confirmation);
      const unconfirmed = confirmation && findUnconfirmed(confirmation, results.slice(calls.length));
      for (const [index, call] of calls.entries()) this.#answer(call, results[index]!, unconfirmed);
    } catch (error) {
      for (const call of calls) this.#answer(call, [error as Error, undefined], undefined);
    }
  }

  async #exchange(calls: readonly Call[], confirmation: Confirmation | undefined): Promise<Result[]> {
    const pipeline = this.#connection.client.pipeline();
    for (const { name, keys, args } of calls)
      pipeline.callBuffer('fcall', this.#library.functionName(name), keys.length, ...keys, ...args);
    if (confirmation) appendConfirmation(pipeline, confirmation, this.#library, calls);
    return ((await pipeline.exec()) ?? []) as Result[];
  }

  #answer(call: Call, [error, reply]: Result, unconfirmed: Error | undefined): void {
    if (error && call.tries < triesMax && wasNotBegun(error)) return void this.#repeat(call, error);
    if (error) call.reject(asNamed(error));
    else if (unconfirmed) call.reject(asNamed(unconfirmed));
    else call.resolve(reply);
  }

  async #repeat(call: Call, error: Error): Promise<void> {
    try {
      if (isMissingFunction(error)) await this.load();
      else {
        await delay(pauseMs(call.tries));
        await this.#connection.refresh();
      }
      this.#enlist({ ...call, tries: call.tries + 1 });
    } catch (failure) {
      call.reject(asNamed(failure));
    }
  }
}

function readTo<T>(
  read: Read<T>,
  reply: unknown,
  { resolve, reject }: { resolve: (value: T | Promise<T>) => void; reject: (error: unknown) => void },
): void {
  try {
    resolve(read(reply));
  } catch (error) {
    reject(error);
  }
}

const isMissingFunction = (error: Error): boolean => error.message.includes('Function not found');

/** The server has said no before it did anything; in a pipeline with WAIT the driver does not follow such answers itself. */
const wasNotBegun = (error: Error): boolean =>
  isMissingFunction(error) || /^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|LOADING)\b/.test(error.message);

export const stopped = () => groundError('stopped', 'the redis store has been stopped');
