/**
 * Calls the scripts. Guarantees: calls to one node go out as one pipeline; a server that does not have a script gets it with
 * the call; calls that meet a slot on its way to another node are made again; a call that was answered is never repeated.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { isHeadgateError } from '../../errors.js';
import { type Answered, type RedisConnection, unavailable } from './connection.js';
import { type Script, type ScriptName, timelineScripts } from './scripts.js';

export interface Call {
  readonly script: ScriptName;
  /** All keys are of this slot. */
  readonly slot: number;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

type Result = [error: Error | null, reply: unknown];

/** A bound for the server's buffers and our own. */
const callsPerPipeline = 64;
const triesMax = 8;
const pauseMs = 50;

export class ScriptCaller {
  readonly #connection: RedisConnection;
  readonly #scripts = timelineScripts();

  constructor(connection: RedisConnection) {
    this.#connection = connection;
  }

  async call(call: Call): Promise<Answered<unknown>> {
    await guarded(() => this.#connection.ready());
    const { reply, server } = await this.#send(this.#connection.nodeOf(call.slot), [call]);
    const [error, answer] = reply[0]!;
    if (error === null) return { reply: answer, server };
    if (!isOnItsWay(error)) throw unavailable(error.message, error);
    return (await this.callAll([call]))[0]!;
  }

  /** Answers in the order of the calls. Throws the first failure; other calls may have been done then. */
  async callAll(calls: readonly Call[]): Promise<Answered<unknown>[]> {
    const answers: Answered<unknown>[] = Array.from({ length: calls.length });
    await guarded(() => this.#connection.ready());
    let waiting = calls.map((_, index) => index);
    for (let tries = 1; waiting.length > 0; tries += 1) {
      const moved: number[] = [];
      await Promise.all(
        this.#byNode(calls, waiting).map(async ([node, indexes]) => {
          const { reply: results, server } = await this.#send(
            node,
            indexes.map((index) => calls[index]!),
          );
          for (const [at, [error, reply]] of results.entries()) {
            if (error === null) answers[indexes[at]!] = { reply, server };
            else if (isOnItsWay(error) && tries < triesMax) moved.push(indexes[at]!);
            else throw unavailable(error.message, error);
          }
        }),
      );
      waiting = moved;
      if (moved.length > 0) {
        await delay(pauseMs * tries);
        await this.#connection.refresh();
      }
    }
    return answers;
  }

  #byNode(calls: readonly Call[], indexes: readonly number[]): (readonly [Redis, number[]])[] {
    const byNode = new Map<Redis, number[]>();
    for (const index of indexes) {
      const node = this.#connection.nodeOf(calls[index]!.slot);
      const held = byNode.get(node);
      if (held) held.push(index);
      else byNode.set(node, [index]);
    }
    return [...byNode].flatMap(([node, held]) => {
      const parts: (readonly [Redis, number[]])[] = [];
      for (let from = 0; from < held.length; from += callsPerPipeline)
        parts.push([node, held.slice(from, from + callsPerPipeline)]);
      return parts;
    });
  }

  async #send(node: Redis, calls: readonly Call[]): Promise<Answered<Result[]>> {
    return guarded(() =>
      this.#connection.ask(node, async () => {
        const results = await exchange(node, calls, (call) => ['evalsha', this.#scripts[call.script].digest]);
        const missing = [...results.keys()].filter((at) => results[at]![0]?.message.startsWith('NOSCRIPT'));
        if (missing.length === 0) return results;
        const text = (call: Call): readonly [string, string] => ['eval', scriptOf(this.#scripts, call).text];
        const again = await exchange(
          node,
          missing.map((at) => calls[at]!),
          text,
        );
        for (const [index, at] of missing.entries()) results[at] = again[index]!;
        return results;
      }),
    );
  }
}

/** Whatever the driver throws becomes an error by name. */
export async function guarded<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isHeadgateError(error)) throw error;
    throw unavailable(error instanceof Error ? error.message : String(error), error);
  }
}

function scriptOf(scripts: Readonly<Record<ScriptName, Script>>, { script }: Call): Script {
  return scripts[script];
}

async function exchange(
  node: Redis,
  calls: readonly Call[],
  head: (call: Call) => readonly [command: string, script: string],
): Promise<Result[]> {
  const [first] = calls;
  if (calls.length === 1 && first) {
    const [command, script] = head(first);
    try {
      return [[null, await node.call(command, script, first.keys.length, ...first.keys, ...first.args)]];
    } catch (error) {
      if (!isReply(error)) throw error;
      return [[error, undefined]];
    }
  }
  const pipeline = node.pipeline();
  for (const call of calls) {
    const [command, script] = head(call);
    pipeline.call(command, script, call.keys.length, ...call.keys, ...call.args);
  }
  return ((await pipeline.exec()) ?? []) as Result[];
}

/** The server answered, with an error. */
function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

function isOnItsWay({ message }: Error): boolean {
  return /^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|READONLY|LOADING|MASTERDOWN) ?/.test(message);
}
