/**
 * What a dequeue costs with 10,000 to 10 million messages waiting under random deadlines, and how many bytes a waiting
 * message takes beyond its payload.
 */
import type { Database } from '../../../src/database/index.js';
import type { Queue } from '../../../src/queue/index.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import { seededRandom } from '../../random.js';
import { fill, withLabQueue } from './queue-on-postgres.js';
import { percentile } from '../../statistics.js';

const factor = 1.5;
const bytesMost = 450;
const payload = { index: 0 };

async function storedBytes(database: Database): Promise<number> {
  const { rows } = await database.query<{ bytes: string }>(
    `select sum(pg_total_relation_size(oid))::text as bytes from pg_class
     where relnamespace = 'headgate_queue'::regnamespace and relkind = 'r'`,
  );
  return Number(rows[0]?.bytes);
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

async function run({ quick, seed, tell }: ExperimentContext): Promise<Report> {
  const sizes = quick ? [10_000, 100_000, 300_000] : [10_000, 100_000, 1_000_000, 10_000_000];
  const random = seededRandom(seed);
  return withLabQueue({}, async ({ queue, database, durability }) => {
    let bytesEach = 0;
    for (const size of sizes) {
      const before = await storedBytes(database);
      const startedAt = performance.now();
      await fill(queue, `waiting-${size}`, size, (index) => ({
        id: String(index).padStart(20, '0'),
        payload,
        priority: 1_760_000_000_000 + Math.floor(random() * 86_400_000),
      }));
      bytesEach = (await storedBytes(database)) / size - before / size - JSON.stringify(payload).length;
      tell(
        `${size.toLocaleString('en')} waiting after ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`,
      );
    }
    await database.script('vacuum analyze');
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
    ]);
    const flat = ratio <= factor;
    const small = bytesEach <= bytesMost;
    return {
      tables: [{ columns: ['waiting', 'median ms', 'p99 ms', 'x smallest'], rows }],
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
