/** Webhooks: signatures, outcomes, and the addresses that are never called. */
import { Webhook } from 'standardwebhooks';
import { afterEach, describe, expect, it } from 'vitest';
import { createWebhookProvider, type AttemptOutcome, type Provider } from '../../src/notify/index.js';
import {
  faultList,
  startHttpCounterpart,
  type Fault,
  type HttpCounterpart,
} from '../../src/testing/index.js';
import { attempt } from './attempt.js';
import { within } from '../limits.js';

const secret = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`;
const content = { type: 'order.placed', data: { number: 7 } };
const open: HttpCounterpart[] = [];
afterEach(async () => {
  for (const counterpart of open.splice(0)) await counterpart.stop();
});

async function counterpart(faults: readonly Fault[] = []): Promise<HttpCounterpart> {
  const started = await startHttpCounterpart({ faults: faultList(faults) });
  open.push(started);
  return started;
}

const create = (server: HttpCounterpart, options = {}): Provider =>
  createWebhookProvider({ secrets: [secret], allow: [`127.0.0.1:${server.port}`], ...options });

async function call(server: HttpCounterpart, limitMs = 2_000): Promise<AttemptOutcome> {
  const destination = { channel: 'webhook', address: `${server.url}/hook` } as const;
  return (await attempt(create(server), { destination, content }, { limitMs })).outcome;
}

describe('webhooks', () => {
  it('are signed so that Standard Webhooks verifies them, with the same id and body in every attempt', async () => {
    const server = await counterpart([{ kind: 'answer', status: 500 }]);
    expect((await call(server)).kind).toBe('ambiguous');
    expect((await call(server)).kind).toBe('sent');
    const [first, second] = server.requests;
    expect(second?.body).toEqual(first?.body);
    expect(second?.headers['webhook-id']).toBe('d-1');
    const verified = new Webhook(secret).verify(
      second?.body.toString() ?? '',
      second?.headers as Record<string, string>,
    );
    expect(verified).toMatchObject({ type: 'order.placed', data: { number: 7 } });
  });

  const cases: [Fault, string][] = [
    [{ kind: 'answer', status: 204 }, 'sent'],
    [{ kind: 'answer', status: 302, headers: { location: 'http://127.0.0.1:1/' } }, 'refused'],
    [{ kind: 'answer', status: 400 }, 'refused'],
    [{ kind: 'answer', status: 403 }, 'refused'],
    [{ kind: 'answer', status: 410 }, 'refused'],
    [{ kind: 'answer', status: 429, headers: { 'retry-after': '7' } }, 'not-accepted'],
    [{ kind: 'answer', status: 500 }, 'ambiguous'],
    [{ kind: 'answer', status: 503 }, 'ambiguous'],
    [{ kind: 'cut' }, 'ambiguous'],
    [{ kind: 'silent' }, 'ambiguous'],
  ];
  it.each(cases)('N18, N44: %j is %s, in one request', async (fault, expected) => {
    const server = await counterpart([fault]);
    expect((await call(server, 300)).kind).toBe(expected);
    expect(server.requests).toHaveLength(1);
  });

  it('N40: what a 429 asks for is handed on', async () => {
    const server = await counterpart([{ kind: 'answer', status: 429, headers: { 'retry-after': '7' } }]);
    expect(await call(server)).toMatchObject({ kind: 'not-accepted', retryAfterMs: 7_000 });
  });

  it('a connection that is refused certainly sent nothing', async () => {
    const server = await counterpart();
    await server.stop();
    open.splice(0);
    expect((await call(server)).kind).toBe('not-accepted');
  });

  it('N47: an answer of one byte a second ends at the total time, and its socket is closed', async () => {
    const server = await counterpart([{ kind: 'drip' }]);
    const destination = { channel: 'webhook', address: server.url } as const;
    const { outcome, tookMs } = await attempt(create(server), { destination, content }, { limitMs: 1_500 });
    // The status came: a webhook is sent when it is answered, whatever its body does.
    expect(outcome.kind).toBe('sent');
    expect(tookMs).toBeLessThan(within(2_200));
    await expect.poll(() => server.connections().open).toBe(0);
  });

  const targets = [
    'http://127.0.0.1',
    'http://[::1]',
    'http://[::ffff:127.0.0.1]',
    'http://169.254.169.254',
    'http://10.0.0.1',
    'http://2130706433',
    'http://0x7f.1',
    'http://localhost',
    'http://0.0.0.0',
    'http://[fd00::1]',
    'http://[64:ff9b::7f00:1]',
  ];
  it.each(targets)('N35: %s is never called', async (target) => {
    const server = await counterpart();
    const provider = createWebhookProvider({ secrets: [secret], allow: ['127.0.0.1:1'] });
    const destination = { channel: 'webhook', address: `${target}:${server.port}/` } as const;
    const { outcome } = await attempt(provider, { destination, content });
    expect(outcome).toEqual({ kind: 'refused', detail: 'target not allowed' });
    expect(server.connections().total).toBe(0);
  });

  it('N35: a name that resolves to a private address at the connection is never called', async () => {
    const server = await counterpart();
    let looked = 0;
    const resolve = ((
      _name: string,
      _options: unknown,
      callback: (error: null, addresses: unknown) => void,
    ) => {
      looked += 1;
      callback(null, [{ address: '127.0.0.1', family: 4 }]);
    }) as never;
    const provider = createWebhookProvider({ secrets: [secret], resolve });
    const destination = {
      channel: 'webhook',
      address: `http://changing.example.test:${server.port}/`,
    } as const;
    expect((await attempt(provider, { destination, content })).outcome.kind).toBe('refused');
    expect(looked).toBe(1);
    expect(server.connections().total).toBe(0);
  });
});
