/**
 * The two guarantees against a counterpart that loses answers, half of them after it took the message, and throttles some:
 * at-most-once never twice, at-least-once never lost, nothing stuck, and the ledger is what the caller counted at every
 * moment. The losses and duplicates are those that the counterpart saw.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/index.js';
import { createWebhookProvider, type Ledger } from '../../src/notify/index.js';
import { faultShares, startHttpCounterpart, type ReceivedRequest } from '../../src/testing/index.js';
import { testDatabases } from '../database/test-databases.js';
import { addsUp, openWorld, quickKinds } from './world.js';

const scale = process.env['HEADGATE_LONG'] === '1' ? 30 : 1;
const seed = Number(process.env['HEADGATE_SEED'] ?? Math.floor(Math.random() * 1e9));

describe.each(testDatabases().slice(0, 2))('the guarantees on $name', (testDatabase) => {
  let database: Database;
  beforeAll(async () => {
    database = await testDatabase.open();
  });
  afterAll(() => database.close());

  it(`hold, and the ledger adds up throughout (HEADGATE_SEED=${seed})`, { timeout: 600_000 }, async () => {
    // The embedded one shows that it works there too; the server works on many at once.
    const sends = scale * (testDatabase.hasSessions ? 300 : 100);
    const counterpart = await startHttpCounterpart({
      identify: ({ headers }: ReceivedRequest) => headers['webhook-id'] ?? '',
      faults: faultShares({
        seed,
        shares: [
          [0.05, { kind: 'cut', accepts: true }],
          [0.05, { kind: 'cut' }],
          [0.02, { kind: 'answer', status: 500, accepts: true }],
          [0.02, { kind: 'answer', status: 500 }],
          [0.05, { kind: 'answer', status: 429 }],
        ],
      }),
    });
    const provider = createWebhookProvider({
      secrets: ['s'],
      timeoutMs: 1_000,
      allow: [`127.0.0.1:${counterpart.port}`],
    });
    const world = await openWorld({ database, providers: [provider], kinds: quickKinds });
    const worker = world.notify.worker({ slots: 20, floors: false });
    await worker.start();
    const to = [{ channel: 'webhook', address: `${counterpart.url}/` } as const];
    let acknowledged = 0;
    const wrong: { ledger: Ledger; from: number; until: number }[] = [];
    const ids = { order: [] as string[], promo: [] as string[] };
    const sample = async (): Promise<Ledger> => {
      const from = acknowledged;
      const ledger = await world.notify.ledger();
      // Sends that were under way while the ledger was read count or not.
      const until = acknowledged + 20;
      const inside = ledger.accepted >= from && ledger.accepted <= until;
      if (!inside || !addsUp(ledger, ledger.accepted)) wrong.push({ ledger, from, until });
      return ledger;
    };
    for (let index = 0; index < sends; index += 10) {
      await Promise.all(
        Array.from({ length: 10 }, async (_, offset) => {
          const kind = (index + offset) % 2 === 0 ? 'order' : 'promo';
          const data = { number: 1, what: 'x' };
          const { deliveries } = await world.notify.send(kind, {
            user: 'u',
            key: `${index + offset}`,
            data,
            to,
          });
          ids[kind].push(deliveries[0]!.id);
          acknowledged += 1;
        }),
      );
      await sample();
    }
    let last = await sample();
    for (const endsAtMs = performance.now() + 200_000; last.waiting > 0 && performance.now() < endsAtMs; ) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      last = await sample();
    }
    expect(wrong).toEqual([]);
    expect(last.waiting).toBe(0);
    const copies = (kind: 'order' | 'promo') => ids[kind].map((id) => counterpart.taken.get(id) ?? 0);
    const promo = await world.notify.ledger({ kind: 'promo' });
    expect(copies('promo').filter((count) => count > 1)).toEqual([]);
    expect(copies('promo').filter((count) => count === 0).length).toBeLessThanOrEqual(promo.ambiguous);
    const failed = (await world.notify.ledger({ kind: 'order' })).failed;
    expect(copies('order').filter((count) => count === 0).length).toBeLessThanOrEqual(failed);
    const unknown = counterpart.requests.length - (last.sent + last.failed);
    const doubled = copies('order').reduce((sum, count) => sum + Math.max(0, count - 1), 0);
    expect(doubled).toBeLessThanOrEqual(unknown);
    await worker.stop();
    await world.stop();
    await counterpart.stop();
  });
});
