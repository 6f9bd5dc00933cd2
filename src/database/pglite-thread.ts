/**
 * The caller's side of the worker thread that holds the embedded database: sends requests, matches answers. Guarantees:
 * every request is answered or rejected, also when the worker dies; an idle thread does not keep the process alive.
 */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { groundError } from '../errors.js';
import type { QueryResult, Row } from './database.js';
import type { WorkerAnswer, WorkerRequest, WorkerResult, WorkerStart } from './pglite-messages.js';
import { SqlError } from './sql-error.js';
import { isStalePlan, StatementNames } from './statement-names.js';
import type { Session } from './transaction.js';
import { decoderOf, encodeValues } from './values.js';

interface Waiting {
  resolve(answer: WorkerAnswer): void;
  reject(error: unknown): void;
}

type RequestWithoutId = WorkerRequest extends infer R
  ? R extends { id: number }
    ? Omit<R, 'id'>
    : never
  : never;

export class PgliteThread implements Session {
  readonly #worker: Worker;
  readonly #names = new StatementNames();
  readonly #waiting = new Map<number, Waiting>();
  readonly #ready: Promise<WorkerAnswer>;
  #lastId = 0;
  #dead: unknown;
  #inTransaction = false;
  #notificationHandler: (channel: string, payload: string) => void = () => {};
  #deathHandler: (error: unknown) => void = () => {};

  private constructor(start: WorkerStart) {
    this.#worker = startWorker(start);
    this.#ready = new Promise((resolve, reject) => this.#waiting.set(readyId, { resolve, reject }));
    this.#worker.on('message', (message: WorkerAnswer) => this.#receive(message));
    this.#worker.on('error', (error) => this.#die(error));
    this.#worker.on('exit', () => this.#die(new Error('the worker thread has ended')));
  }

  /** Starts the worker and opens the database. */
  static async start(start: WorkerStart): Promise<PgliteThread> {
    const thread = new PgliteThread(start);
    await thread.#ready;
    return thread;
  }

  /** Whether the last statement left a transaction open. */
  get inTransaction(): boolean {
    return this.#inTransaction;
  }

  onNotification(handler: (channel: string, payload: string) => void): void {
    this.#notificationHandler = handler;
  }

  onDeath(handler: (error: unknown) => void): void {
    this.#deathHandler = handler;
  }

  async query<R extends Row>(text: string, values: readonly unknown[] = []): Promise<QueryResult<R>> {
    const name = this.#names.of(text);
    try {
      return decodeResult<R>(await this.#run({ kind: 'query', text, name, values: encodeValues(values) }));
    } catch (error) {
      if (isStalePlan(error)) this.#names.renew(text);
      throw error;
    }
  }

  async script(text: string): Promise<void> {
    await this.#run({ kind: 'script', text });
  }

  async command(text: string): Promise<string> {
    return (await this.#run({ kind: 'script', text })).command;
  }

  async dump(): Promise<Uint8Array> {
    const answer = await this.#request({ kind: 'dump' });
    if (answer.kind !== 'dump') throw unexpected(answer);
    return answer.bytes;
  }

  /** Ends the worker at once; every waiting call is rejected. */
  kill(cause: unknown): void {
    this.#die(cause);
  }

  async close(): Promise<void> {
    if (this.#dead === undefined) await this.#request({ kind: 'close' });
    this.#dead ??= groundError('database-closed', 'the database has been closed');
    await this.#worker.terminate();
  }

  async #run(request: RequestWithoutId): Promise<WorkerResult> {
    const answer = await this.#request(request);
    if (answer.kind !== 'result') throw unexpected(answer);
    return answer.result;
  }

  #request(request: RequestWithoutId): Promise<WorkerAnswer> {
    if (this.#dead !== undefined) return Promise.reject(this.#dead);
    this.#lastId += 1;
    const id = this.#lastId;
    if (this.#waiting.size === 0) this.#worker.ref();
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
      this.#worker.postMessage({ ...request, id });
    });
  }

  #receive(message: WorkerAnswer): void {
    if (message.kind === 'notification') return this.#notificationHandler(message.channel, message.payload);
    if (message.kind === 'failure') return this.#die(new Error(message.message));
    const id = message.kind === 'ready' ? readyId : message.id;
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#worker.unref();
    if ('inTransaction' in message) this.#inTransaction = message.inTransaction;
    if (message.kind === 'sql-error') waiting?.reject(new SqlError(message.fields));
    else waiting?.resolve(message);
  }

  #die(cause: unknown): void {
    if (this.#dead !== undefined) return;
    const text = cause instanceof Error ? cause.message.split('\n')[0] : String(cause);
    this.#dead = groundError('database-unavailable', `the embedded database has stopped: ${text}`, { cause });
    for (const { reject } of this.#waiting.values()) reject(this.#dead);
    this.#waiting.clear();
    this.#inTransaction = false;
    void this.#worker.terminate();
    this.#deathHandler(this.#dead);
  }
}

/** The first answer belongs to no request. */
const readyId = 0;

function unexpected(answer: WorkerAnswer): Error {
  return new Error(`the worker thread gave an answer of another kind: ${answer.kind}`);
}

/** From the TypeScript sources (tests) the worker brings the loader of tsx along; from `dist` it needs none. */
function startWorker(workerData: WorkerStart): Worker {
  if (!import.meta.url.endsWith('.ts')) {
    return new Worker(new URL('./pglite-worker.js', import.meta.url), { workerData });
  }
  const loader = pathToFileURL(createRequire(import.meta.url).resolve('tsx/esm/api')).href.replace(
    /cjs$/,
    'mjs',
  );
  const file = new URL('./pglite-worker.ts', import.meta.url).href;
  const source = `import { register } from '${loader}'; register(); await import('${file}');`;
  return new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`), {
    workerData,
    execArgv: [],
  });
}

function decodeResult<R extends Row>({ names, types, rows, rowCount }: WorkerResult): QueryResult<R> {
  const decoders = types.map(decoderOf);
  return {
    rowCount,
    rows: rows.map((texts) => {
      const row: Row = {};
      for (let column = 0; column < texts.length; column += 1) {
        const text = texts[column] ?? null;
        row[names[column] as string] = text === null ? null : decoders[column]?.(text);
      }
      return row as R;
    }),
  };
}
