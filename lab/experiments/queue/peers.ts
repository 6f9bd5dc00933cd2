/**
 * The queue's workloads beside the peers of the store (graphile-worker and pg-boss, or BullMQ): same server, same
 * durability, same retention, same Node binary, one side at a time in turn, an exact count of deliveries. Judged by the
 * ratios of the queue's targets.
 */
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import { preparePeers, runDriver } from '../../peers/run-driver.js';
import { median } from '../../statistics.js';
import { type Arena, comparing, type Comparison, type Side } from './peers-comparisons.js';
import { storeOf } from './queue-under-test.js';

interface Measured {
  readonly side: Side;
  readonly perSecond: number;
}

async function compare(
  context: ExperimentContext,
  arena: Arena,
  { name, sides, request }: Comparison,
): Promise<Measured[]> {
  const rates = new Map<Side, number[]>();
  for (let round = 0; round < (context.quick ? 1 : 3); round += 1) {
    for (const side of sides) {
      const url = await arena.freshUrl();
      const { retention } = side;
      const answer = await runDriver(side.peer, { ...request, retention, url, durability: arena.durability });
      if (answer.lost + answer.doubled > 0) {
        throw new Error(`${side.label}: ${answer.lost} messages lost, ${answer.doubled} handled twice`);
      }
      const perSecond = request.messages / answer.seconds;
      context.tell(`${arena.label}: ${name}: ${side.label} ${Math.round(perSecond).toLocaleString('en')}/s`);
      rates.set(side, [...(rates.get(side) ?? []), perSecond]);
    }
  }
  return sides.map((side) => ({ side, perSecond: median(rates.get(side) ?? []) }));
}

interface Findings {
  readonly figures: Record<string, Figure>;
  readonly rows: Figure[][];
  readonly misses: string[];
}

function judge(
  findings: Findings,
  arena: Arena,
  comparison: Comparison,
  measured: readonly Measured[],
): void {
  const mine = measured[0]!.perSecond;
  const name = `${arena.label}: ${comparison.name}`;
  for (const { side, perSecond } of measured) {
    const target = comparison.targets[side.peer];
    const ratio = mine / perSecond;
    findings.figures[`${name}: ${side.label}`] = Math.round(perSecond);
    findings.rows.push([name, side.label, Math.round(perSecond), ratio, target ?? null]);
    if (target !== undefined && ratio < target)
      findings.misses.push(`${name} is ${ratio.toFixed(2)} x ${side.label} (to reach: ${target} x)`);
  }
}

async function run(context: ExperimentContext): Promise<Report> {
  const { arenas, comparisons, reference } = comparing[storeOf(context)];
  const nodeVersion = await preparePeers();
  const findings: Findings = { figures: { node: nodeVersion }, rows: [], misses: [] };
  const durabilities: string[] = [];
  for (const open of arenas) {
    const arena = await open();
    durabilities.push(arena.label);
    try {
      for (const comparison of comparisons(context.quick))
        judge(findings, arena, comparison, await compare(context, arena, comparison));
    } finally {
      await arena.stop();
    }
  }
  const { figures, rows, misses } = findings;
  return {
    tables: [{ columns: ['workload', 'side', 'per second', 'ours / side', 'to reach'], rows }],
    figures,
    reference,
    durability: `the same for all sides: ${durabilities.join('; ')}; Node ${nodeVersion}`,
    holds: misses.length === 0,
    verdict: misses.length === 0 ? 'every workload reaches its factor' : misses.join('; '),
  };
}

export const peers: Experiment = {
  name: 'peers',
  shows:
    "the queue's workloads beside graphile-worker and pg-boss, or BullMQ (--store redis): same server, durability and Node",
  run,
};
