/**
 * The queue's workloads on the postgres store beside graphile-worker and pg-boss: same server, same fsync, same Node
 * binary, one side at a time in turn, an exact count of deliveries. Judged by the ratios of the queue's targets.
 */
import { startPostgresServer } from '../../../src/testing/index.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import { type DriverRequest, type PeerName, preparePeers, runDriver } from '../../peers/run-driver.js';
import { median } from '../../statistics.js';

interface Side {
  readonly label: string;
  readonly peer: PeerName;
  readonly retention: DriverRequest['retention'];
}

interface Comparison {
  readonly name: string;
  readonly request: Omit<DriverRequest, 'url' | 'retention'>;
  readonly sides: readonly Side[];
  /** By which factor the first side must be faster than each of these. */
  readonly targets: Readonly<Partial<Record<PeerName, number>>>;
}

const ours: Side = { label: 'headgate', peer: 'headgate', retention: 'default' };
const oursBare: Side = { label: 'headgate, retention 0', peer: 'headgate', retention: 'none' };
const graphile: Side = { label: 'graphile-worker', peer: 'graphile-worker', retention: 'default' };
const boss: Side = { label: 'pg-boss', peer: 'pg-boss', retention: 'default' };

function comparisons(quick: boolean): Comparison[] {
  const messages = quick ? 40_000 : 200_000;
  const burnDown = { workload: 'burn-down', messages, slots: 100 } as const;
  const awaited = { workload: 'one-at-a-time', messages: quick ? 1_000 : 10_000 } as const;
  return [
    {
      name: 'burn-down, 100 slots',
      request: burnDown,
      sides: [ours, oursBare, graphile, boss],
      targets: { 'graphile-worker': 2, 'pg-boss': 2.5 },
    },
    {
      name: 'bulk enqueue',
      request: { workload: 'bulk-enqueue', messages, slots: 1 },
      sides: [ours, graphile, boss],
      targets: { 'pg-boss': 2 },
    },
    {
      name: 'one at a time',
      request: { ...awaited, slots: 1 },
      sides: [ours, boss],
      targets: { 'pg-boss': 1.2 },
    },
    {
      name: 'one at a time, 64 side by side',
      request: { ...awaited, slots: 64 },
      sides: [ours, boss],
      targets: { 'pg-boss': 1.2 },
    },
  ];
}

interface Measured {
  readonly side: Side;
  readonly perSecond: number;
}

async function compare(
  context: ExperimentContext,
  comparison: Comparison,
  createDatabase: () => Promise<string>,
): Promise<Measured[]> {
  const rates = new Map<Side, number[]>();
  for (let round = 0; round < (context.quick ? 1 : 3); round += 1) {
    for (const side of comparison.sides) {
      const request = { ...comparison.request, retention: side.retention, url: await createDatabase() };
      const answer = await runDriver(side.peer, request);
      if (answer.lost + answer.doubled > 0) {
        throw new Error(`${side.label}: ${answer.lost} messages lost, ${answer.doubled} handled twice`);
      }
      const perSecond = request.messages / answer.seconds;
      context.tell(`${comparison.name}: ${side.label} ${Math.round(perSecond).toLocaleString('en')}/s`);
      rates.set(side, [...(rates.get(side) ?? []), perSecond]);
    }
  }
  return comparison.sides.map((side) => ({ side, perSecond: median(rates.get(side) ?? []) }));
}

async function run(context: ExperimentContext): Promise<Report> {
  const nodeVersion = await preparePeers();
  const server = await startPostgresServer({ fsync: true });
  const figures: Record<string, Figure> = { node: nodeVersion, postgres: server.majorVersion };
  const rows: Figure[][] = [];
  const misses: string[] = [];
  try {
    for (const comparison of comparisons(context.quick)) {
      const measured = await compare(context, comparison, () => server.createDatabase());
      const mine = measured[0]!.perSecond;
      for (const { side, perSecond } of measured) {
        const target = comparison.targets[side.peer];
        const ratio = mine / perSecond;
        figures[`${comparison.name}: ${side.label}`] = Math.round(perSecond);
        rows.push([comparison.name, side.label, Math.round(perSecond), ratio, target ?? null]);
        if (target !== undefined && ratio < target) {
          misses.push(`${comparison.name} is ${ratio.toFixed(2)} x ${side.label} (to reach: ${target} x)`);
        }
      }
    }
  } finally {
    await server.stop();
  }
  return {
    tables: [{ columns: ['workload', 'side', 'per second', 'ours / side', 'to reach'], rows }],
    figures,
    reference: {
      machine: 'two cores shared by server and workers, PostgreSQL 15, fsync on',
      'graphile-worker 0.18 burn-down': 25_800,
      'pg-boss 12 burn-down': 19_600,
      'pg-boss 12 insert': 52_000,
    },
    durability: `fsync on, synchronous_commit on, for all sides; PostgreSQL ${server.majorVersion}, Node ${nodeVersion}`,
    holds: misses.length === 0,
    verdict: misses.length === 0 ? 'every workload reaches its factor' : misses.join('; '),
  };
}

export const peers: Experiment = {
  name: 'peers',
  shows: "the queue's workloads beside graphile-worker and pg-boss: same server, durability and Node binary",
  run,
};
