/**
 * The worker thread of the embedded database: runs one request after the other and answers each. A statement holds
 * this thread's event loop for its whole time, which is why it has a thread of its own.
 */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { messages, PGlite, protocol } from '@electric-sql/pglite';
import type { WorkerAnswer, WorkerRequest, WorkerResult, WorkerStart } from './pglite-messages.js';
import type { SqlErrorFields } from './sql-error.js';

const { serialize } = protocol;
type BackendMessage = Awaited<ReturnType<PGlite['execProtocol']>>['messages'][number];

const start = workerData as WorkerStart;
const port = parentPort;
if (!port) throw new Error('this file runs as a worker thread');
const answer = (message: WorkerAnswer): void => port.postMessage(message);

/**
 * Opens the database files. A start that is cut in the middle of making them leaves a mark, and the next one begins
 * anew: nothing can have been acknowledged before the mark is gone.
 */
async function open({ folder, seedFile }: WorkerStart): Promise<PGlite> {
  const seed = async (): Promise<{ loadDataDir: Blob } | undefined> =>
    seedFile === undefined ? undefined : { loadDataDir: new Blob([await readFile(seedFile)]) };
  if (folder === undefined) return PGlite.create({ ...(await seed()) });
  const mark = `${folder}.unfinished`;
  const unfinished = await readFile(mark).then(
    () => true,
    () => false,
  );
  if (unfinished) await rm(folder, { recursive: true, force: true });
  const exists = await readFile(`${folder}/PG_VERSION`).then(
    () => true,
    () => false,
  );
  if (exists) return PGlite.create({ dataDir: folder });
  await writeFile(
    mark,
    'The database files beside this file are being made. If it stays, the making was cut short.\n',
  );
  const database = await PGlite.create({ dataDir: folder, ...(await seed()) });
  await rm(mark);
  return database;
}

function resultOf(answers: readonly BackendMessage[]): WorkerResult {
  let names: string[] = [];
  let types: number[] = [];
  const rows: (string | null)[][] = [];
  let tag = '';
  for (const message of answers) {
    if (message instanceof messages.RowDescriptionMessage) {
      names = message.fields.map((field) => field.name);
      types = message.fields.map((field) => field.dataTypeID);
    } else if (message instanceof messages.DataRowMessage) rows.push(message.fields);
    else if (message instanceof messages.CommandCompleteMessage) tag = message.text;
  }
  const words = tag.split(' ');
  return { names, types, rows, rowCount: Number(words.at(-1)) || 0, command: words[0] ?? '' };
}

function joinBytes(parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}

async function query(
  database: PGlite,
  text: string,
  values: readonly (string | null)[],
): Promise<WorkerResult> {
  const request = joinBytes([
    serialize.parse({ text }),
    serialize.bind({ values: [...values] }),
    serialize.describe({ type: 'P' }),
    serialize.execute({}),
    serialize.sync(),
  ]);
  return resultOf((await database.execProtocol(request)).messages);
}

async function handle(database: PGlite, request: WorkerRequest): Promise<WorkerAnswer> {
  switch (request.kind) {
    case 'query':
      return { kind: 'result', id: request.id, result: await query(database, request.text, request.values) };
    case 'script': {
      const { messages } = await database.execProtocol(serialize.query(request.text));
      return { kind: 'result', id: request.id, result: resultOf(messages) };
    }
    case 'dump': {
      const file = await database.dumpDataDir('none');
      return { kind: 'dump', id: request.id, bytes: new Uint8Array(await file.arrayBuffer()) };
    }
    case 'close':
      await database.close();
      return { kind: 'result', id: request.id, result: resultOf([]) };
  }
}

function sqlErrorFields(error: InstanceType<typeof messages.DatabaseError>): SqlErrorFields {
  const { message, detail, hint, schema, table, column, constraint, position, where } = error;
  return {
    code: error.code ?? 'XX000',
    message,
    detail,
    hint,
    schema,
    table,
    column,
    constraint,
    position,
    where,
  };
}

function failureText(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

async function answerTo(database: PGlite, request: WorkerRequest): Promise<void> {
  try {
    answer(await handle(database, request));
  } catch (error) {
    if (error instanceof messages.DatabaseError)
      answer({ kind: 'sql-error', id: request.id, fields: sqlErrorFields(error) });
    else answer({ kind: 'failure', id: request.id, message: failureText(error) });
  }
  if (request.kind === 'close') port?.close();
}

try {
  const database = await open(start);
  database.onNotification((channel, payload) => answer({ kind: 'notification', channel, payload }));
  let previous = Promise.resolve();
  port.on('message', (request: WorkerRequest) => {
    previous = previous.then(() => answerTo(database, request));
  });
  answer({ kind: 'ready' });
} catch (error) {
  answer({ kind: 'failure', id: undefined, message: failureText(error) });
}
