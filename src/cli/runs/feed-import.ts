/**
 * What `headgate feed import` does: reads a file as a stream into the database, which it opens itself. An interrupted
 * import is begun again by the same command, because what is there already is left as it is.
 */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { invalidInput } from '../../errors.js';
import {
  type BadLine,
  type Feed,
  type FollowFormat,
  followFormats,
  readFollows,
  readPosts,
} from '../../feed/index.js';
import { noMetrics } from '../../metrics.js';
import { storeConfig, type Environment, type Flags } from '../config.js';
import { createLog } from '../log.js';
import { print, table } from '../output.js';
import { createProgressDisplay } from '../progress.js';
import { watchSignals } from '../shutdown.js';
import { wire } from '../wire.js';

const badLinesShown = 10;

interface Source {
  readonly chunks: AsyncIterable<Uint8Array>;
  /** Undefined: the length is not known, and there is nothing to show a share of. */
  readonly total: number | undefined;
  done(): number;
}

async function openSource(file: string): Promise<Source> {
  if (file === '-') return { chunks: process.stdin, total: undefined, done: () => 0 };
  const size = await stat(file).then(
    (found) => (found.isFile() ? found.size : undefined),
    () => undefined,
  );
  if (size === undefined) throw invalidInput('file', file, 'a readable file, or - for standard input');
  const stream = createReadStream(file);
  return { chunks: stream, total: size, done: () => stream.bytesRead };
}

/** Counts lines that are left out, keeps the first few for the summary, and ends the import at one too many. */
class BadLines {
  readonly first: BadLine[] = [];
  readonly #max: number;
  count = 0;

  constructor(max: number) {
    this.#max = max;
  }

  readonly add = (bad: BadLine): void => {
    this.count += 1;
    if (this.first.length < badLinesShown) this.first.push(bad);
    if (this.count <= this.#max) return;
    const named = this.first.map(({ line, fault }) => `\n  line ${line}: ${fault}`).join('');
    throw invalidInput(
      '--bad-lines-max',
      this.#max,
      `more, or a better file; it has more bad lines:${named}`,
    );
  };
}

function formatOf(given: unknown, file: string): FollowFormat {
  if (given === undefined) {
    const name = file.replace(/\.gz$/, '');
    if (name.endsWith('.csv')) return 'csv';
    return /\.(jsonl|ndjson)$/.test(name) ? 'jsonl' : 'edges';
  }
  const format = followFormats.find((known) => known === given);
  if (format === undefined) throw invalidInput('--format', given, followFormats.join(', '));
  return format;
}

interface Import {
  readonly what: 'follows' | 'posts';
  readonly source: Source;
  readonly format: FollowFormat;
  readonly badLinesMax: number;
  readonly signal: AbortSignal;
}

async function parseImport(what: string, file: string, flags: Flags): Promise<Omit<Import, 'signal'>> {
  if (what !== 'follows' && what !== 'posts') throw invalidInput('what', what, 'follows or posts');
  const format = formatOf(flags['format'], file);
  return { what, source: await openSource(file), format, badLinesMax: Number(flags['badLinesMax']) };
}

async function runImport(feed: Feed, { what, source, format, badLinesMax, signal }: Import): Promise<object> {
  const badLines = new BadLines(badLinesMax);
  const display = createProgressDisplay();
  const onProgress = (): void => {
    if (source.total !== undefined) display.update(`importing ${what}`, source.done(), source.total);
  };
  const onBadLine = badLines.add;
  try {
    const outcome =
      what === 'posts'
        ? await feed.importPosts(readPosts(source.chunks, { onBadLine }), { onProgress, signal })
        : await feed.importFollows(readFollows(source.chunks, { format, onBadLine }), { onProgress, signal });
    return { ...outcome, badLines: badLines.count };
  } finally {
    display.end();
    for (const { line, fault } of badLines.count > badLinesMax ? [] : badLines.first)
      process.stderr.write(`headgate: line ${line} was left out: ${fault}\n`);
    const more = badLines.count - badLines.first.length;
    if (more > 0) process.stderr.write(`headgate: and ${more} more\n`);
  }
}

export async function feedImport(
  what: string,
  file: string,
  { flags, environment }: { readonly flags: Flags; readonly environment: Environment },
): Promise<void> {
  const wanted = await parseImport(what, file, flags);
  const shutdown = watchSignals();
  const parts = await wire(storeConfig(flags, environment), {
    log: createLog('warn'),
    metrics: noMetrics,
  });
  try {
    const outcome = await runImport(parts.feed, { ...wanted, signal: shutdown.signal });
    print(outcome, { json: flags['json'] === true }, (counts) => table([counts]));
  } catch (error) {
    if (!shutdown.signal.aborted) throw error;
    process.stderr.write('headgate: interrupted; the same command goes on where this one stopped\n');
    process.exitCode = 130;
  } finally {
    shutdown.begin();
    await parts.stop();
  }
}
