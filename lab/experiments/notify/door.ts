/**
 * One event, one message: client repeats, consumer replays and concurrent repeats under three keys, a request id, a hash
 * of the content and the business key; and two events of equal content, which must stay two. Then the ceiling of accepted
 * sends a second.
 */
import { createHash } from 'node:crypto';
import type { Provider } from '../../../src/notify/index.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import { openEngine, sideBySide, until, withLabServer, type LabEngine } from './engine.js';

/** What reaches the door for one event of the business. */
interface Request {
  /** What happened: the same in every repeat. */
  readonly event: string;
  /** Made by the client for each call that it means as a new one. */
  readonly requestId: string;
  readonly data: { readonly number: number; readonly printedAt: string };
}

type KeyName = 'request id' | 'content hash' | 'business key';
const keys: Readonly<Record<KeyName, (request: Request) => string>> = {
  'request id': ({ requestId }) => requestId,
  'content hash': ({ data }) => createHash('sha256').update(JSON.stringify(data)).digest('hex'),
  'business key': ({ event }) => event,
};

/** How one event comes to the door more than once, or two events look alike: requests in the order of their calls. */
const scenarios: Readonly<
  Record<
    string,
    { readonly atOnce: boolean; readonly events: number; readonly of: (index: number) => readonly Request[] }
  >
> = {
  // The call timed out at the client, whose library makes it again as it was.
  'client repeats': {
    atOnce: false,
    events: 1,
    of: (index) => [request(index, 'a', '10:00'), request(index, 'a', '10:00'), request(index, 'a', '10:00')],
  },
  // The consumer died after the call and before its offset was kept: it handles the event again and renders it again.
  'consumer replays': {
    atOnce: false,
    events: 1,
    of: (index) => [request(index, 'a', '10:00'), request(index, 'b', '10:03')],
  },
  // Two instances handle the same event at the same moment.
  'concurrent repeats': {
    atOnce: true,
    events: 1,
    of: (index) => [request(index, 'a', '10:00'), request(index, 'b', '10:00'), request(index, 'c', '10:01')],
  },
  // Nobody repeats anything: the same thing was ordered twice.
  'two events of equal content': {
    atOnce: false,
    events: 2,
    of: (index) => [
      { ...request(index, 'a', '10:00'), event: `first-${index}` },
      { ...request(index, 'b', '10:00'), event: `second-${index}` },
    ],
  },
};

function request(index: number, call: string, printedAt: string): Request {
  return { event: `event-${index}`, requestId: `${index}-${call}`, data: { number: index, printedAt } };
}

async function run({ quick, tell }: ExperimentContext): Promise<Report> {
  const events = quick ? 40 : 400;
  return withLabServer(async ({ open, durability }) => {
    const { database } = await open({ poolMax: 16 });
    const calls = new Map<string, number>();
    const provider: Provider = {
      name: 'counterpart',
      channel: 'email',
      async attempt({ destination: { address } }) {
        calls.set(address, (calls.get(address) ?? 0) + 1);
        return { kind: 'sent' };
      },
    };
    const engine = await openEngine({ database, suffix: 'door', providers: [provider] });
    const worker = engine.notify.worker({ slots: 50, floors: false });
    await worker.start();
    const rows: Figure[][] = [];
    const figures: Record<string, Figure> = {};
    const wrong = new Map<string, number>();
    for (const [scenario, { atOnce, events: meant, of }] of Object.entries(scenarios)) {
      const row: Figure[] = [scenario, events * meant];
      for (const [name, keyOf] of Object.entries(keys)) {
        const address = `${scenario} ${name}`.replaceAll(' ', '-').concat('@example.test');
        const send = (one: Request) =>
          engine.notify.send('order', {
            user: address,
            key: keyOf(one),
            data: one.data,
            to: [{ channel: 'email', address }],
          });
        await sideBySide(events, 8, async (index) => {
          if (atOnce) await Promise.all(of(index).map(send));
          else for (const one of of(index)) await send(one);
        });
        await until('all are called', 60_000, async () => (await engine.notify.ledger()).waiting === 0);
        const messages = calls.get(address) ?? 0;
        row.push(messages);
        figures[`${scenario}, ${name}: messages`] = messages;
        if (messages !== events * meant) wrong.set(name, (wrong.get(name) ?? 0) + 1);
      }
      rows.push(row);
    }
    await worker.stop();
    const ceiling = await measureCeiling(engine, quick);
    for (const [name, perSecond] of Object.entries(ceiling)) {
      tell(`${name}: ${Math.round(perSecond)}/s`);
      figures[`accepted a second, ${name}`] = Math.round(perSecond);
    }
    await engine.stop();
    const holds = !wrong.has('business key') && wrong.has('request id') && wrong.has('content hash');
    return {
      tables: [
        { columns: ['what happens', 'messages meant', ...Object.keys(keys)], rows },
        {
          columns: ['accepted sends', 'a second'],
          rows: Object.entries(ceiling).map(([name, perSecond]): Figure[] => [name, Math.round(perSecond)]),
        },
      ],
      figures,
      reference: { 'stops all three': 'only the business key' },
      durability,
      holds,
      verdict: `the business key is wrong in ${wrong.get('business key') ?? 0} of ${rows.length} rows, the request id in ${wrong.get('request id') ?? 0}, the content hash in ${wrong.get('content hash') ?? 0}`,
    };
  });
}

/** Sends that are accepted while nobody delivers. */
async function measureCeiling({ notify }: LabEngine, quick: boolean): Promise<Record<string, number>> {
  const count = quick ? 2_000 : 20_000;
  let made = 0;
  const requests = (size: number) =>
    Array.from({ length: size }, () => ({
      user: `u${made % 1_000}`,
      key: `ceiling-${made++}`,
      data: { number: made },
      to: [{ channel: 'email', address: 'ceiling@example.test' } as const],
    }));
  const rate = async (calls: number, width: number, size: number): Promise<number> => {
    const startedAtMs = performance.now();
    await sideBySide(calls, width, () => notify.sendMany('order', requests(size)));
    return (calls * size) / ((performance.now() - startedAtMs) / 1_000);
  };
  return {
    'one caller, one after the other': await rate(count / 20, 1, 1),
    '64 callers side by side': await rate(count, 64, 1),
    'batches of 500': await rate(Math.ceil((2 * count) / 500), 2, 500),
  };
}

export const door: Experiment = {
  name: 'door',
  shows: 'repeats under a request id, a content hash and the business key; accepted sends a second',
  run,
};
