/**
 * Kill -9 at every step of the path of a notification. Whatever the step: the caller's repeat finds what it sent or sends
 * it for the first time, nothing stays in sending, at-most-once arrives at most once, at-least-once at least once, and the
 * ledger is what the caller counted.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/index.js';
import { createWebhookProvider } from '../../src/notify/index.js';
import { startHttpCounterpart, type HttpCounterpart, type ReceivedRequest } from '../../src/testing/index.js';
import { testServers } from '../database/test-databases.js';
import { addsUp, openWorld, quickKinds, type World } from '../notify/world.js';
import { until } from '../../src/testing/until.js';
import type { ChildTask } from './notify-child.js';

const points = [
  'accept:before',
  'accept:after',
  'enqueue:after',
  'commit:before',
  'commit:after',
  'dequeue:after',
  'claim:before',
  'claim:after',
  'call:before',
  'call:during',
  'call:after',
  'settle:before',
  'settle:after',
  'complete:before',
];

/** The points at which the two guarantees part; a long run walks all points with both. */
const unknownPoints = ['claim:after', 'call:before', 'call:during', 'call:after', 'settle:before'];
const isLong = process.env['HEADGATE_LONG'] === '1';

function pointsOf(kind: 'order' | 'promo'): string[] {
  return points.filter(
    (point, index) => isLong || unknownPoints.includes(point) || (index % 2 === 0) === (kind === 'promo'),
  );
}

/** What was claimed when its process died may have been called; what was not is sent by the next one. */
function promoEnds(die: string): 'ambiguous' | 'sent' {
  return unknownPoints.includes(die) ? 'ambiguous' : 'sent';
}

/** One server shows it: what differs between versions is shown by the other tests. */
const [server] = testServers();
/** Side by side, each with schemas of its own. */
const lanes = 3;

describe.skipIf(server === undefined)('a process that is killed (needs a PostgreSQL server)', () => {
  let database: Database;
  const worlds: World[] = [];
  const counterparts: HttpCounterpart[] = [];
  beforeAll(async () => {
    database = await server!.open({ poolMax: 12 });
    for (let lane = 0; lane < lanes; lane += 1) {
      const counterpart = await startHttpCounterpart({
        identify: ({ headers }: ReceivedRequest) => headers['webhook-id'] ?? '',
        // Long enough to be killed in between.
        faults: { next: () => ({ kind: 'late', delayMs: 250 }) },
      });
      counterparts.push(counterpart);
      const provider = createWebhookProvider({
        secrets: ['secret'],
        timeoutMs: 1_000,
        allow: [`127.0.0.1:${counterpart.port}`],
      });
      worlds.push(
        await openWorld({
          database,
          providers: [provider],
          kinds: quickKinds,
          timings: { marginMs: 400 },
          suffix: `kill_${process.pid}_${lane}`,
        }),
      );
    }
  });
  afterAll(async () => {
    for (const world of worlds) await world.stop();
    for (const counterpart of counterparts) await counterpart.stop();
    await database.close();
  });

  /** Lets a child run into its end and somebody else pick up the pieces. */
  async function walk(lane: number, task: Pick<ChildTask, 'kind' | 'die' | 'key'>): Promise<void> {
    const world = worlds[lane]!;
    const counterpart = counterparts[lane]!;
    const { kind, key } = task;
    await runChild({
      ...task,
      url: await server!.url(),
      suffix: `kill_${process.pid}_${lane}`,
      port: counterpart.port,
    });
    const before = await world.notify.ledger();
    const outcome = await world.notify.send(kind, {
      user: 'u',
      key,
      data: { number: 1, what: 'boots' },
      to: [{ channel: 'webhook', address: `http://127.0.0.1:${counterpart.port}/` }],
    });
    expect(['accepted', 'duplicate']).toContain(outcome.kind);
    const id = outcome.deliveries[0]!.id;
    const worker = world.notify.worker({ slots: 2, floors: false, leaseMs: 500 });
    await worker.start();
    await until(
      async () => !['waiting', 'sending'].includes((await world.notify.delivery(id))?.state ?? 'waiting'),
      {
        what: `${kind} ends after ${task.die}`,
      },
    );
    await worker.stop();
    const delivery = await world.notify.delivery(id);
    const copies = counterpart.taken.get(id) ?? 0;
    const after = await world.notify.ledger();
    const accepted = before.accepted + (outcome.kind === 'accepted' ? 1 : 0);
    expect({
      die: task.die,
      state: delivery?.state,
      copiesKeepThePromise: kind === 'promo' ? copies <= 1 : copies >= 1,
      ledgerAddsUp: addsUp(after, accepted),
    }).toEqual({
      die: task.die,
      state: kind === 'order' ? 'sent' : promoEnds(task.die),
      copiesKeepThePromise: true,
      ledgerAddsUp: true,
    });
    expect(after.waiting).toBe(0);
  }

  it.each(['order', 'promo'] as const)(
    '%s keeps its promise at every step',
    { timeout: 120_000 },
    async (kind) => {
      const failures: unknown[] = [];
      const left = pointsOf(kind).map((die) => ({ die, key: `${kind} ${die}`, kind }));
      const run = async (lane: number): Promise<void> => {
        for (let task = left.shift(); task !== undefined; task = left.shift()) {
          await walk(lane, task).catch((error: unknown) => failures.push(error));
        }
      };
      await Promise.all(Array.from({ length: lanes }, (_, lane) => run(lane)));
      expect(failures).toEqual([]);
    },
  );
});

/** Resolves when the child has killed itself; anything else is a step that was never reached. */
async function runChild(task: ChildTask): Promise<void> {
  const file = fileURLToPath(new URL('notify-child.ts', import.meta.url));
  const child = spawn(process.execPath, ['--import', 'tsx', file, JSON.stringify(task)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (bytes: Buffer) => (errors += bytes.toString()));
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  if (signal !== 'SIGKILL') throw new Error(`${task.die} was not reached (exit ${code}): ${errors}`);
}
