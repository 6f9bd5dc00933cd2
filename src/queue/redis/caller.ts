/**
 * Calls functions of the library. Guarantees: calls of one turn of the event loop go out as one pipeline (one for each queue in
 * a Cluster); a server that has lost the library, or never had it, gets it and the call is made again; where replicas must
 * confirm, one WAIT answers for the whole pipeline and its count is checked; errors of the server become errors by name.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { groundError, isHeadgateError } from '../../errors.js';
import type { RedisConnection } from './connection.js';
import { redisQueueError } from './errors.js';
import type { FunctionLibrary } from './library.js';

export interface Replication {
  readonly replicas: number;
  readonly timeoutMs: number;
}

interface Call {
  readonly name: string;
  readonly keys: readonly string[];
  readonly args: readonly (string | number | Buffer)[];
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** How often it has been sent. */
  tries: number;
}

type Result = [error: Error | null, reply: unknown];

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
  #replication: Replication | undefined;
  #scheduled = false;
  #loading: Promise<void> | undefined;

  constructor(connection: RedisConnection, library: FunctionLibrary) {
    this.#connection = connection;
    this.#library = library;
  }

  /** From now on every change is answered when so many replicas have it. */
  requireReplicas(replication: Replication): void {
    this.#replication = replication;
  }

  call(name: string, keys: readonly string[], args: readonly (string | number | Buffer)[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#enlist({ name, keys, args, resolve, reject, tries: 1 });
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
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.#flush());
  }

  #flush(): void {
    this.#scheduled = false;
    const groups = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const calls of groups) {
      for (let from = 0; from < calls.length; from += callsPerPipeline)
        void this.#send(calls.slice(from, from + callsPerPipeline));
    }
  }

  async #send(calls: readonly Call[]): Promise<void> {
    try {
      const results = await this.#exchange(calls);
      const confirmed = this.#confirmation(results, calls.length);
      for (const [index, call] of calls.entries()) this.#answer(call, results[index]!, confirmed);
    } catch (error) {
      for (const call of calls) this.#answer(call, [error as Error, undefined], undefined);
    }
  }

  async #exchange(calls: readonly Call[]): Promise<Result[]> {
    const { client } = this.#connection;
    const [first] = calls;
    if (calls.length === 1 && first && !this.#replication) {
      const name = this.#library.functionName(first.name);
      return [
        [null, await client.callBuffer('fcall', name, first.keys.length, ...first.keys, ...first.args)],
      ];
    }
    const pipeline = client.pipeline();
    for (const { name, keys, args } of calls)
      pipeline.callBuffer('fcall', this.#library.functionName(name), keys.length, ...keys, ...args);
    if (this.#replication) pipeline.wait(this.#replication.replicas, this.#replication.timeoutMs);
    return ((await pipeline.exec()) ?? []) as Result[];
  }

  /** The error of a pipeline that too few replicas have confirmed. */
  #confirmation(results: readonly Result[], at: number): Error | undefined {
    if (!this.#replication) return undefined;
    const [error, replicas] = results[at] ?? [new Error('no answer to WAIT'), undefined];
    if (error) return asNamed(error);
    if (Number(replicas) >= this.#replication.replicas) return undefined;
    const text = `${String(replicas)} of ${this.#replication.replicas} replicas confirmed the change in time`;
    return redisQueueError('not-replicated', text);
  }

  #answer(call: Call, [error, reply]: Result, unconfirmed: Error | undefined): void {
    if (error && call.tries < triesMax && wasNotBegun(error)) return void this.#repeat(call, error);
    if (error) call.reject(asNamed(error));
    else if (unconfirmed) call.reject(unconfirmed);
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

const isMissingFunction = (error: Error): boolean => error.message.includes('Function not found');

/** The server has said no before it did anything; in a pipeline with WAIT the driver does not follow such answers itself. */
const wasNotBegun = (error: Error): boolean =>
  isMissingFunction(error) || /^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|LOADING)\b/.test(error.message);

const unavailable =
  /^(READONLY|MOVED|ASK|LOADING|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOREPLICAS|MISCONF|BUSY)|Connection is closed|Connection ended|max retries|timed? ?out|ECONN|EPIPE|ENOTFOUND|All nodes|Command aborted|Stream isn't writeable|redirections|Failed to refresh/i;

/** The server's error by the name that callers know; anything else stays what it is. */
function asNamed(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  if (isHeadgateError(error)) return error;
  if (/^OOM|used memory > 'maxmemory'/.test(error.message))
    return redisQueueError('redis-full', 'Redis has reached maxmemory; nothing was stored', { cause: error });
  if (
    unavailable.test(`${error.message} ${(error as { code?: string }).code ?? ''}`) ||
    error.name === 'MaxRetriesPerRequestError'
  )
    return redisQueueError('redis-unavailable', `Redis does not answer: ${error.message}`, { cause: error });
  return error;
}

export const stopped = () => groundError('stopped', 'the redis store has been stopped');
