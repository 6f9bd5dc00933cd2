/**
 * What a dequeue costs with 10,000 to 10 million messages waiting under random deadlines, and how many bytes a waiting
 * message takes beyond its payload.
 */
import type { NewMessage, Queue } from '../../../src/queue/index.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import { seededRandom } from '../../random.js';
import {
  durabilityOfTimes,
  fill,
  type QueueUnderTest,
  storeOf,
  type StoreName,
  withQueue,
} from './queue-under-test.js';
import { percentile } from '../../statistics.js';

const factor = 1.5;
const bytesMost = 450;
const payload = { index: 0 };

interface Shape {
  readonly label: string;
  readonly isExclusive: boolean;
  readonly metadata: (index: number) => Record<string, string>;
}

/** What a message takes beside the plain one: with a pair, and with an exclusivity value. */
const shapes: readonly Shape[] = [
  { label: 'one pair', isExclusive: false, metadata: (index) => ({ region: `r${index % 10}` }) },
  { label: 'an exclusivity value', isExclusive: true, metadata: (index) => ({ user: `u${index % 1_000}` }) },
];

const message = (index: number, random: () => number, metadata?: Record<string, string>): NewMessage => ({
  id: String(index).padStart(20, '0'),
  payload,
  priority: 1_760_000_000_000 + Math.floor(random() * 86_400_000),
  ...(metadata && { metadata }),
});

/** Fills a queue; bytes a message beyond its payload. */
async function fillAndWeigh(
  { queue, storedBytes }: QueueUnderTest,
  name: string,
  size: number,
  messageOf: (index: number) => NewMessage,
): Promise<number> {
  const before = await storedBytes();
  await fill(queue, name, size, messageOf);
  return ((await storedBytes()) - before) / size - JSON.stringify(payload).length;
}

function sizesOf(quick: boolean, store: StoreName): number[] {
  if (!quick) return [10_000, 100_000, 1_000_000, 10_000_000];
  return store === 'redis' ? [10_000, 100_000, 1_000_000] : [10_000, 100_000, 300_000];
}

/** Dequeue and complete, one at a time; the time of the dequeues. */
async function measure(queue: Queue, name: string, count: number): Promise<number[]> {
  const times: number[] = [];
  for (let call = 0; call < count; call += 1) {
    const startedAt = performance.now();
    const messages = await queue.dequeue(name);
    times.push(performance.now() - startedAt);
    if (messages.length !== 1) throw new Error(`${name}: nothing to dequeue`);
    await queue.complete(name, messages);
  }
  return times;
}

async function weighShapes(
  lab: QueueUnderTest,
  size: number,
  random: () => number,
): Promise<[label: string, bytes: number][]> {
  const weighed: [string, number][] = [];
  for (const { label, isExclusive, metadata } of shapes) {
    if (isExclusive) await lab.queue.configure(label, { type: { kind: 'exclusive', key: 'user' } });
    const bytes = await fillAndWeigh(lab, label, size, (index) => message(index, random, metadata(index)));
    weighed.push([`bytes a message with ${label}`, bytes]);
  }
  return weighed;
}

async function run(context: ExperimentContext): Promise<Report> {
  const { quick, seed, tell } = context;
  const store = storeOf(context);
  const sizes = sizesOf(quick, store);
  const random = seededRandom(seed);
  return withQueue({ store, durability: durabilityOfTimes(store) }, async (lab) => {
    const { queue, maintain, durability } = lab;
    let bytesEach = 0;
    for (const size of sizes) {
      const startedAt = performance.now();
      bytesEach = await fillAndWeigh(lab, `waiting-${size}`, size, (index) => message(index, random));
      tell(
        `${size.toLocaleString('en')} waiting after ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`,
      );
    }
    const more = await weighShapes(lab, quick ? 50_000 : 200_000, random);
    await maintain('vacuum analyze');
    const times = new Map<number, number[]>(sizes.map((size) => [size, []]));
    for (let round = 0; round < (quick ? 10 : 40); round += 1) {
      for (const size of sizes) times.get(size)!.push(...(await measure(queue, `waiting-${size}`, 50)));
    }
    const p99 = (size: number): number => percentile(times.get(size)!, 0.99);
    const rows = sizes.map((size): Figure[] => [
      size,
      percentile(times.get(size)!, 0.5),
      p99(size),
      p99(size) / p99(sizes[0]!),
    ]);
    const ratio = p99(sizes.at(-1)!) / p99(sizes[0]!);
    const figures = Object.fromEntries([
      ...sizes.map((size) => [`p99 ms at ${size}`, p99(size)] as const),
      ['bytes a message', bytesEach],
      ...more,
    ]);
    const flat = ratio <= factor;
    const small = bytesEach <= bytesMost;
    return {
      tables: [
        { columns: ['waiting', 'median ms', 'p99 ms', 'x smallest'], rows },
        {
          columns: ['bytes a message beyond its payload', 'bytes'],
          rows: [['plain', bytesEach], ...more],
        },
      ],
      figures,
      reference: {
        'p99 to reach': `within ${factor} x of 10,000 waiting`,
        'bytes to reach': `under ${bytesMost} beyond the payload`,
      },
      durability,
      holds: flat && small,
      verdict: `p99 at ${sizes.at(-1)!.toLocaleString('en')} is ${ratio.toFixed(2)} x that at 10,000; ${Math.round(bytesEach)} bytes a message beyond its payload`,
    };
  });
}

export const backlog: Experiment = {
  name: 'backlog',
  shows: 'dequeue time and bytes a message with 10,000 to 10 million waiting',
  run,
};
