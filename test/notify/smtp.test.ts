/** What the SMTP adapter says about each way in which a server can misbehave. */
import { simpleParser } from 'mailparser';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSmtpProvider, type Provider } from '../../src/notify/index.js';
import { startSmtpCounterpart, type SmtpCounterpart, type SmtpFault } from '../../src/testing/index.js';
import { attempt } from './attempt.js';
import { within } from '../limits.js';

const destination = { channel: 'email', address: 'a@example.test' } as const;
const content = { subject: 'Grüezi', text: 'Hello.\n.\nA dot.', html: '<p>Hello</p>' };

let server: SmtpCounterpart;
beforeAll(async () => {
  server = await startSmtpCounterpart();
});
afterAll(() => server.stop());

const create = (connectionsMax = 0): Provider =>
  createSmtpProvider({
    host: '127.0.0.1',
    port: server.port,
    requireTls: false,
    from: 'Shop <shop@example.test>',
    pool: { connectionsMax },
  });

describe.each([0, 5])('SMTP with %i idle connections kept', (connectionsMax) => {
  const cases: [SmtpFault, string][] = [
    [{ at: 'connect', does: 'close' }, 'not-accepted'],
    [{ at: 'greeting', does: 'close' }, 'not-accepted'],
    [{ at: 'greeting', does: 'reset' }, 'not-accepted'],
    [{ at: 'mail', does: 'close' }, 'not-accepted'],
    [{ at: 'rcpt', does: 'close' }, 'not-accepted'],
    [{ at: 'data', does: 'close' }, 'not-accepted'],
    [{ at: 'data', does: 'silent' }, 'not-accepted'],
    [{ at: 'body', does: 'close' }, 'ambiguous'],
    [{ at: 'body', does: 'reset' }, 'ambiguous'],
    [{ at: 'body', does: 'silent' }, 'ambiguous'],
    [{ at: 'body', does: 'drip' }, 'ambiguous'],
    [{ at: 'rcpt', does: { reply: '421 4.3.2 closing' } }, 'not-accepted'],
    [{ at: 'rcpt', does: { reply: '451 4.7.1 later' } }, 'not-accepted'],
    [{ at: 'body', does: { reply: '452 4.3.1 full' } }, 'not-accepted'],
    [{ at: 'body', does: { reply: '550 5.7.1 spam' } }, 'refused'],
    [{ at: 'rcpt', does: { reply: '550 5.1.1 nobody' } }, 'refused'],
    [{ at: 'rcpt', does: { reply: '552 5.2.2 full' } }, 'refused'],
  ];

  it.each(cases)('N46: %j is %s, in one connection', async (fault, expected) => {
    server.script([fault]);
    const before = server.connections().total;
    const { outcome, tookMs } = await attempt(
      create(connectionsMax),
      { destination, content },
      { limitMs: 400 },
    );
    expect(outcome.kind).toBe(expected);
    expect(tookMs).toBeLessThan(within(900));
    expect(server.connections().total - before).toBe(1);
  });

  it('only a mailbox that does not exist retires its address', async () => {
    const retires = async (reply: string): Promise<unknown> => {
      server.script([{ at: 'rcpt', does: { reply } }]);
      const { outcome } = await attempt(create(connectionsMax), { destination, content });
      return outcome.kind === 'refused' && outcome.retire?.reason;
    };
    expect(await retires('550 5.1.1 nobody')).toBe('smtp 550 5.1.1');
    expect(await retires('552 5.2.2 full')).toBeUndefined();
    expect(await retires('550 5.7.1 policy')).toBeUndefined();
  });

  it('every attempt sends the same bytes, to exactly one recipient', async () => {
    const provider = create(connectionsMax);
    const before = server.messages.length;
    server.script([{ at: 'body', does: 'silent' }]);
    await attempt(provider, { destination, content }, { limitMs: 200 });
    expect((await attempt(provider, { destination, content, attempt: 2 })).outcome.kind).toBe('sent');
    const [first, second] = server.messages.slice(before);
    expect(second?.raw).toBe(first?.raw);
    expect(second?.to).toEqual(['a@example.test']);
    const parsed = await simpleParser(Buffer.from(second?.raw ?? '', 'latin1'));
    expect(parsed.subject).toBe('Grüezi');
    expect(parsed.messageId).toBe('<d-1@example.test>');
    expect(parsed.text?.trim()).toBe('Hello.\n.\nA dot.');
    await provider.stop?.();
  });
});

describe('the connections of SMTP', () => {
  it('N12: a server that closes before its greeting costs one connection an attempt', async () => {
    server.script([{ at: 'greeting', does: 'close' }], { repeat: true });
    const before = server.connections().total;
    const provider = create(5);
    for (let round = 0; round < 5; round += 1) {
      expect((await attempt(provider, { destination, content })).outcome.kind).toBe('not-accepted');
    }
    expect(server.connections().total - before).toBe(5);
    server.script([]);
    expect((await attempt(provider, { destination, content })).outcome.kind).toBe('sent');
    await provider.stop?.();
  });

  it('one that is kept is used again', async () => {
    server.script([]);
    const provider = create(5);
    const before = server.connections().total;
    for (let round = 0; round < 3; round += 1) await attempt(provider, { destination, content });
    expect(server.connections().total - before).toBe(1);
    await provider.stop?.();
  });

  it('a server that nobody listens at is not accepted', async () => {
    const provider = createSmtpProvider({
      host: '127.0.0.1',
      port: 1,
      requireTls: false,
      from: 'a@example.test',
    });
    expect((await attempt(provider, { destination, content })).outcome).toMatchObject({
      kind: 'not-accepted',
    });
  });
});
