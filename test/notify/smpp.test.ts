/** What the SMPP adapter says about each way in which an SMSC can misbehave, and what it holds afterwards. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSmppProvider, type Receipt, type SmppProvider } from '../../src/notify/index.js';
import {
  faultList,
  startSmppCounterpart,
  type Fault,
  type SmppCounterpart,
} from '../../src/testing/index.js';
import { silentLog } from '../../src/log.js';
import { attempt } from './attempt.js';
import { until } from '../../src/testing/until.js';
import { within } from '../limits.js';

const destination = { channel: 'sms', address: '+41791234567' } as const;
const content = { text: 'Your code is 482913' };

let server: SmppCounterpart;
const providers: SmppProvider[] = [];
beforeAll(async () => {
  server = await startSmppCounterpart({ password: 'right' });
});
afterAll(async () => {
  for (const provider of providers) await provider.stop?.();
  await server.stop();
});

function create(password = 'right'): SmppProvider {
  const provider = createSmppProvider({
    host: '127.0.0.1',
    port: server.port,
    systemId: 'us',
    password,
    from: 'Shop',
  });
  providers.push(provider);
  return provider;
}

describe('SMPP', () => {
  const cases: [Fault, string][] = [
    [{ kind: 'none' }, 'sent'],
    [{ kind: 'answer', status: 0x58 }, 'not-accepted'],
    [{ kind: 'answer', status: 0x14 }, 'not-accepted'],
    [{ kind: 'answer', status: 0x08 }, 'ambiguous'],
    [{ kind: 'answer', status: 0x0b }, 'refused'],
    [{ kind: 'answer', status: 0x65 }, 'refused'],
    [{ kind: 'cut' }, 'ambiguous'],
    [{ kind: 'silent' }, 'ambiguous'],
    [{ kind: 'drip' }, 'ambiguous'],
  ];
  it.each(cases)('N16: %j is %s, and nothing stays pending', async (fault, expected) => {
    server.script(faultList([fault]));
    const provider = create();
    const before = server.messages.length;
    const { outcome, tookMs } = await attempt(provider, { destination, content }, { limitMs: 300 });
    expect(outcome.kind).toBe(expected);
    expect(tookMs).toBeLessThan(within(800));
    expect(server.messages.length - before).toBe(1);
    expect(provider.state().pending).toBe(0);
    expect((await attempt(provider, { destination, content })).outcome.kind).toBe('sent');
  });

  it('a close after submit_sm ends the attempt at once', async () => {
    server.script(faultList([{ kind: 'cut' }]));
    const { outcome, tookMs } = await attempt(create(), { destination, content }, { limitMs: 10_000 });
    expect(outcome).toMatchObject({ kind: 'ambiguous', detail: 'smpp closed' });
    expect(tookMs).toBeLessThan(within(5_000));
  });

  it('wrong credentials send nothing and are called configuration', async () => {
    server.script(faultList([]));
    const { outcome } = await attempt(create('wrong'), { destination, content });
    expect(outcome).toEqual({
      kind: 'not-accepted',
      detail: 'smpp bind ESME_RINVPASWD',
      configuration: true,
    });
  });

  it('N48: the SMSC gets the time that is left', async () => {
    server.script(faultList([]));
    await attempt(create(), { destination, content, timeLeftMs: 8_400 });
    expect(Math.abs(Number(server.messages.at(-1)?.validityPeriod) - 9)).toBeLessThanOrEqual(1);
  });

  it('a long text is one request', async () => {
    const before = server.messages.length;
    await attempt(create(), { destination, content: { text: 'é'.repeat(400) } });
    expect(server.messages.length - before).toBe(1);
  });

  it('receipts come over the session', async () => {
    server.script(faultList([]));
    const provider = create();
    const receipts: Receipt[] = [];
    await provider.start?.({ log: silentLog, receive: async (receipt) => void receipts.push(receipt) });
    const { outcome } = await attempt(provider, { destination, content });
    const messageId = outcome.kind === 'sent' ? outcome.messageId : undefined;
    server.receipt(messageId as string, 'DELIVRD');
    await until(() => receipts.length > 0);
    expect(receipts[0]).toEqual({ messageId, status: 'delivered', detail: 'smpp DELIVRD err 000' });
  });
});
