/**
 * Accepted-to-provider throughput beside the same pipeline on BullMQ: the same key, mark and outcome rows in the same
 * PostgreSQL server, the same counterpart, one process a side, sides in turn, an exact count of calls.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startRedisServer } from '../../../src/testing/redis-server.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import { median } from '../../statistics.js';
import { withLabServer } from './engine.js';
import type { SideAnswer, SideTask } from './peer/side.js';

const run = promisify(execFile);
const sides = ['headgate', 'bullmq'] as const;
type Side = (typeof sides)[number];
const target = 1.5;

async function runSide(side: Side, task: SideTask): Promise<SideAnswer> {
  const file = fileURLToPath(new URL(`peer/${side}-side.ts`, import.meta.url));
  const { stdout } = await run(process.execPath, ['--import', 'tsx', file, JSON.stringify(task)], {
    maxBuffer: 16 * 2 ** 20,
  });
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as SideAnswer;
}

async function runExperiment({ quick, tell }: ExperimentContext): Promise<Report> {
  const sends = quick ? 4_000 : 20_000;
  const rounds = quick ? 1 : 3;
  const answers = new Map<Side, SideAnswer[]>(sides.map((side) => [side, []]));
  const durability = await withLabServer(async ({ server, durability: text }) => {
    for (let round = 0; round < rounds; round += 1) {
      for (const side of sides) {
        // Of its own in each run, so that no side begins with the leavings of another.
        const redis = await startRedisServer({ fsync: 'everysec' });
        try {
          const databaseUrl = await server.createDatabase();
          const task = { databaseUrl, redisUrl: redis.url, sends, callers: 32, slots: 100 };
          const answer = await runSide(side, task);
          if (answer.lost + answer.doubled > 0)
            throw new Error(`${side}: ${answer.lost} lost, ${answer.doubled} doubled`);
          tell(
            `${side}: accepted ${Math.round(answer.accepted)}/s, delivered ${Math.round(answer.delivered)}/s, both ${Math.round(answer.whole)}/s`,
          );
          answers.get(side)!.push(answer);
        } finally {
          await redis.stop();
        }
      }
    }
    return text;
  });
  const rate = (side: Side, figure: 'accepted' | 'delivered' | 'whole'): number =>
    median(answers.get(side)!.map((answer) => answer[figure]));
  const ratio = (figure: 'accepted' | 'delivered' | 'whole'): number =>
    rate('headgate', figure) / rate('bullmq', figure);
  const rows = (['accepted', 'delivered', 'whole'] as const).map((figure): Figure[] => [
    { accepted: 'accepted', delivered: 'delivered from a backlog', whole: 'accepted and delivered' }[figure],
    Math.round(rate('headgate', figure)),
    Math.round(rate('bullmq', figure)),
    ratio(figure),
  ]);
  const whole = ratio('whole');
  return {
    tables: [{ columns: ['a second', 'headgate', 'BullMQ', 'ours / theirs'], rows }],
    figures: Object.fromEntries(
      rows.flatMap(([name, ours, theirs, factor]) => [
        [`${name}: headgate`, ours as Figure],
        [`${name}: BullMQ`, theirs as Figure],
        [`${name}: ratio`, factor as Figure],
      ]),
    ),
    reference: { 'to reach': `${target} x accepted and delivered` },
    durability: `${durability} on both sides; BullMQ's Redis with an append-only file flushed every second: a job of its last second is gone after a power cut, and nothing but a sweep over the rows would find it`,
    holds: whole >= target,
    verdict: `${whole.toFixed(2)} x the pipeline on BullMQ (to reach: ${target} x); ours also writes the readable history, checks preferences, retirement and the deadline again, and wakes up in the transaction that accepts`,
  };
}

export const notifyPeer: Experiment = {
  name: 'notify-peer',
  shows: 'accepted-to-provider throughput beside the same pipeline on BullMQ',
  run: runExperiment,
};
