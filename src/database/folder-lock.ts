/**
 * Lets one process at a time hold a data folder, and tells everybody else who holds it. Guarantees: two processes of
 * one machine (containers that share the folder included) never both hold it; a holder that was killed leaves nothing
 * that a next start trips over. Not for a folder that several machines mount.
 *
 * A holder listens on a local socket in `<folder>/lock`, because the kernel closes it with the process, which a pid in
 * a file cannot say (in a container every server is pid 1). Nobody shares a name, so nobody can take away another's:
 *
 *     made (x.new, not yet listening) -> starting (x.sock, listens) -> held
 *
 * A starter first shows its own socket and then asks all the others. One that answers `held` refuses it. Of two that
 * are `starting` at the same time at least one sees the other: the one with the higher id withdraws and asks again
 * later, the lower one waits until it is alone. A socket that refuses the connection has a dead owner and is removed.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rename, rm, stat, symlink } from 'node:fs/promises';
import { createConnection, createServer, type Server } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { groundError } from '../errors.js';

/** Who holds a folder. */
export interface FolderHolder {
  readonly pid: number;
  readonly host: string;
  /** Unix milliseconds of the start, by the holder's clock. */
  readonly startedAt: number;
  /** Where the holder's server listens, once it does. */
  readonly address: string | undefined;
}

export interface FolderLock {
  /** Makes the address of the running server known to those who ask, for instance `http://127.0.0.1:8080`. */
  setAddress(address: string | undefined): void;
  /** May be called twice. */
  release(): Promise<void>;
}

interface Answer extends FolderHolder {
  readonly id: string;
  readonly state: 'starting' | 'held';
}

type Peer =
  | { readonly kind: 'dead' }
  | { readonly kind: 'silent'; readonly id: string }
  | { readonly kind: 'alive'; readonly answer: Answer };

const answerTimeoutMs = 2_000;
const contestMs = 5_000;
const madeSuffix = '.new';
const socketSuffix = '.sock';
// sun_path holds 108 bytes on Linux and 104 on macOS, and what is longer is cut off without an error by some systems.
const socketPathBytesMax = 100;

/**
 * Takes the folder (made if missing) or throws `folder-locked` with the holder's address and pid.
 *
 * @param options.address where the holder's server listens, when it is known already
 */
export async function lockFolder(folder: string, options: { address?: string } = {}): Promise<FolderLock> {
  const directory = lockDirectory(folder);
  await mkdir(directory, { recursive: true });
  const endsAtMs = performance.now() + contestMs;
  for (;;) {
    const entry = await showSocket(directory, options.address);
    const refusal = await contend(directory, entry, endsAtMs).catch(async (error: unknown) => {
      await entry.release();
      throw error;
    });
    if (refusal === undefined) {
      await clearUnfinished(directory);
      return entry;
    }
    await entry.release();
    // one that does not answer may have ended while it was asked
    if ((refusal === 'starting' || refusal === 'silent') && performance.now() < endsAtMs) {
      await delay(20 + Math.random() * 80);
      continue;
    }
    throw folderLocked(folder, refusal === 'starting' || refusal === 'silent' ? undefined : refusal);
  }
}

/** Tells who holds the folder, or undefined when nobody does. */
export async function readFolderLock(folder: string): Promise<FolderHolder | undefined> {
  for (const peer of await askPeers(lockDirectory(folder), undefined)) {
    if (peer.kind === 'alive' && peer.answer.state === 'held') return holderOf(peer.answer);
  }
  return undefined;
}

function lockDirectory(folder: string): string {
  return join(resolve(folder), 'lock');
}

function holderOf({ pid, host, startedAt, address }: Answer): FolderHolder {
  return { pid, host, startedAt, address };
}

function folderLocked(folder: string, holder: FolderHolder | undefined) {
  const who = holder
    ? `process ${holder.pid} on ${holder.host}${holder.address === undefined ? '' : `, which serves ${holder.address}`}`
    : 'a process that does not answer';
  return groundError('folder-locked', `the data folder ${resolve(folder)} is held by ${who}`, {
    ids: {
      folder: resolve(folder),
      ...(holder && { pid: String(holder.pid) }),
      ...(holder?.address && { address: holder.address }),
    },
  });
}

/** Undefined: we hold the folder. Otherwise why not: its holder, one that does not answer, or a better starter. */
async function contend(
  directory: string,
  entry: Entry,
  endsAtMs: number,
): Promise<FolderHolder | 'silent' | 'starting' | undefined> {
  for (;;) {
    const peers = await askPeers(directory, entry.id);
    let rivals = 0;
    for (const peer of peers) {
      if (peer.kind === 'silent') return 'silent';
      if (peer.kind === 'dead') continue;
      if (peer.answer.state === 'held') return holderOf(peer.answer);
      if (peer.answer.id < entry.id) return 'starting';
      rivals += 1;
    }
    if (rivals === 0) {
      entry.hold();
      return undefined;
    }
    if (performance.now() > endsAtMs) return 'starting';
    await delay(10);
  }
}

/** A starter that is killed before it shows its socket leaves one that nobody asks; one that is slow has a minute. */
async function clearUnfinished(directory: string): Promise<void> {
  const names = await readdir(directory);
  for (const path of names.filter((name) => name.endsWith(madeSuffix)).map((name) => join(directory, name))) {
    const made = await stat(path).catch(() => undefined);
    if (made && Date.now() - made.mtimeMs > 60_000) await rm(path, { force: true });
  }
}

interface Entry extends FolderLock {
  readonly id: string;
  hold(): void;
}

/** Shows a socket of our own in the folder; it listens before it gets the name under which others look for it. */
async function showSocket(directory: string, addressAtStart: string | undefined): Promise<Entry> {
  const id = randomBytes(8).toString('hex');
  const madeName = `${id}${madeSuffix}`;
  const path = join(directory, `${id}${socketSuffix}`);
  const startedAt = Date.now();
  let state: Answer['state'] = 'starting';
  let address = addressAtStart;
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    const answer: Answer = { id, state, pid: process.pid, host: hostname(), startedAt, address };
    socket.end(`${JSON.stringify(answer)}\n`);
  });
  await withShortPath(directory, madeName, (shortPath) => listen(server, shortPath));
  server.unref();
  await rename(join(directory, madeName), path);
  return {
    id,
    hold: () => {
      state = 'held';
    },
    setAddress: (value) => {
      address = value;
    },
    release: async () => {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      await rm(path, { force: true });
      await closed;
    },
  };
}

async function listen(server: Server, path: string): Promise<void> {
  server.listen(path);
  await once(server, 'listening');
}

async function askPeers(directory: string, ownId: string | undefined): Promise<Peer[]> {
  const names = await readdir(directory).catch(() => []);
  const others = names.filter((name) => name.endsWith(socketSuffix) && name !== `${ownId}${socketSuffix}`);
  return Promise.all(
    others.map(async (name) => {
      const peer = await withShortPath(directory, name, (path) =>
        ask(path, name.slice(0, -socketSuffix.length)),
      );
      if (peer.kind === 'dead') await rm(join(directory, name), { force: true });
      return peer;
    }),
  );
}

/** Asks one socket. Only a refused connection means death: a process that is stopped or busy accepts and says nothing. */
function ask(path: string, id: string): Promise<Peer> {
  return new Promise((answerWith) => {
    let text = '';
    const socket = createConnection(path);
    const finish = (peer: Peer): void => {
      socket.destroy();
      answerWith(peer);
    };
    socket.setTimeout(answerTimeoutMs, () => finish({ kind: 'silent', id }));
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => {
      text += chunk;
    });
    socket.on('end', () => finish(parseAnswer(text, id)));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      const dead = error.code === 'ECONNREFUSED' || error.code === 'ENOENT';
      finish(dead ? { kind: 'dead' } : { kind: 'silent', id });
    });
  });
}

function parseAnswer(text: string, id: string): Peer {
  try {
    return { kind: 'alive', answer: JSON.parse(text) as Answer };
  } catch {
    return { kind: 'silent', id };
  }
}

/** Gives a path to the socket that fits into a socket address: the length counts, not where a link in it leads. */
async function withShortPath<T>(
  directory: string,
  name: string,
  use: (path: string) => Promise<T>,
): Promise<T> {
  const path = join(directory, name);
  if (Buffer.byteLength(path) <= socketPathBytesMax) return use(path);
  const detour = await mkdtemp(join(tmpdir(), 'headgate-'));
  try {
    const link = join(detour, 'd');
    await symlink(directory, link);
    return await use(join(link, name));
  } finally {
    await rm(detour, { recursive: true, force: true });
  }
}
