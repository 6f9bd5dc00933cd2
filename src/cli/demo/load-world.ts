/**
 * Brings the demo world into the feed: a follow graph from a file, or a generated one. Guarantees that a world is loaded
 * once per data folder, that an interrupted load goes on at the next start (importing again creates nothing twice), and
 * that memory stays bounded whatever the file.
 */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { invalidInput } from '../../errors.js';
import { generateFollows, parseEdgeList, type Feed, type ImportProgress } from '../../feed/index.js';
import type { Progress } from '../../server/index.js';
import type { DemoConfig } from '../config.js';
import { createSampler } from './sampler.js';
import { checkSameWorld, readWorldRecord, writeWorldRecord } from './world-record.js';

/** What the traffic and the first lines on the screen need to know of the world. */
export interface World {
  readonly accounts: readonly string[];
  readonly mostFollowed: string;
  /** A follower of `mostFollowed`. */
  readonly reader: string;
  /** What the load did, in a line; undefined when the world was there. */
  readonly summary: string | undefined;
}

export interface LoadWorldOptions {
  readonly feed: Feed;
  readonly demo: DemoConfig;
  readonly dataFolder: string;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: Progress) => void;
}

interface Source {
  /** Names the world in the data folder. */
  readonly name: string;
  readonly unit: string;
  readonly total: number;
  /** How much of `total` has been read. */
  done(): number;
  pairs(): AsyncIterable<readonly [string, string]> | Iterable<readonly [string, string]>;
}

/** The generated world is always the same for the same number of accounts. */
const seed = 1;
/** A sixth of the published median: the demo should be up within seconds. */
const followeesMedian = 20;

async function fileSource(path: string): Promise<Source> {
  const size = await stat(path).then(
    (found) => (found.isFile() ? found.size : undefined),
    () => undefined,
  );
  if (size === undefined) throw invalidInput('--follows', path, 'a readable file');
  const stream = createReadStream(path);
  return {
    name: `${basename(path)} (${size} bytes)`,
    unit: 'bytes of the follow graph',
    total: size,
    done: () => stream.bytesRead,
    pairs: () => parseEdgeList(stream),
  };
}

function generatedSource(accounts: number): Source {
  let done = 0;
  return {
    name: `a generated world of ${accounts} accounts`,
    unit: 'accounts of a generated world',
    total: accounts,
    done: () => done,
    *pairs() {
      let last: string | undefined;
      for (const pair of generateFollows({ shape: 'twitter-active', accounts, seed, followeesMedian })) {
        if (pair[0] !== last) done += 1;
        last = pair[0];
        yield pair;
      }
    },
  };
}

function summaryOf(progress: ImportProgress, seconds: number): string {
  const count = (value: number) => value.toLocaleString('en-US');
  return (
    `loaded ${count(progress.created)} follows of ${count(progress.accountsCreated)} new accounts in ${seconds.toFixed(1)} s` +
    ` (skipped ${count(progress.selfFollows)} self-follows, ${count(progress.known)} known)`
  );
}

/** Undefined when it was interrupted by `signal`. */
export async function loadWorld({
  feed,
  demo,
  dataFolder,
  signal,
  onProgress,
}: LoadWorldOptions): Promise<World | undefined> {
  const record = await readWorldRecord(dataFolder);
  const asksForAnother = demo.followsFile !== undefined || demo.accountsGiven;
  if (record?.loaded && !asksForAnother) return { ...record.sample, summary: undefined };

  const source =
    demo.followsFile === undefined ? generatedSource(demo.accounts) : await fileSource(demo.followsFile);
  checkSameWorld(record, source.name, dataFolder);
  if (record?.loaded) return { ...record.sample, summary: undefined };
  await writeWorldRecord(dataFolder, { source: source.name, loaded: false });

  const startedMs = performance.now();
  const sampler = createSampler();
  let progress: ImportProgress;
  try {
    progress = await feed.importFollows(sampler.watch(source.pairs()), {
      signal,
      onProgress: () =>
        onProgress({ stage: `loading ${source.unit}`, done: source.done(), total: source.total }),
    });
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
  const sample = sampler.sample();
  if (!sample) throw invalidInput('--follows', demo.followsFile, 'a file with at least one follow');
  await writeWorldRecord(dataFolder, { source: source.name, loaded: true, sample });
  return { ...sample, summary: summaryOf(progress, (performance.now() - startedMs) / 1_000) };
}
