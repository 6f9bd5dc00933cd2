/** The counterparts themselves: what they take is what was sent, and a seed repeats how they misbehave. */
import { createConnection } from 'node:net';
import webPush from 'web-push';
import { describe, expect, it } from 'vitest';
import { createResendProvider, createWebPushProvider } from '../../src/notify/index.js';
import {
  faultList,
  faultShares,
  smtpFaultShares,
  startPushCounterpart,
  startResendCounterpart,
  startSmtpCounterpart,
  type Fault,
} from '../../src/testing/index.js';
import { attempt } from './attempt.js';

describe('the push service', () => {
  it('reads what a browser would, with the time to live that is left, and forgets who has gone', async () => {
    const service = await startPushCounterpart();
    const vapid = { subject: 'mailto:ops@example.test', ...webPush.generateVAPIDKeys() };
    const allow = [`127.0.0.1:${service.port}`];
    const provider = createWebPushProvider({ vapid, ca: service.ca, allow });
    const subscription = service.subscribe();
    const call = () =>
      attempt(provider, {
        destination: {
          channel: 'push',
          address: subscription.endpoint,
          details: { platform: 'web', ...subscription.keys },
        },
        content: { title: 'Hello', body: 'Grüße' },
        timeLeftMs: 9_000,
      });
    expect((await call()).outcome.kind).toBe('sent');
    const [message] = service.messages;
    expect(JSON.parse(message!.text)).toMatchObject({ title: 'Hello', body: 'Grüße' });
    expect(message!.ttl).toBe(9);
    service.unsubscribe(subscription);
    expect((await call()).outcome).toMatchObject({ kind: 'refused', retire: expect.anything() });
    expect(service.messages).toHaveLength(1);
    await service.stop();
  });
});

describe('the mail service with idempotency keys', () => {
  it('sends once a key, answers a repeat with the first result, and says when the first one still runs', async () => {
    const slow: Fault = { kind: 'late', delayMs: 1_000 };
    const service = await startResendCounterpart({ faults: faultList([slow]) });
    const provider = createResendProvider({ apiKey: 'k', from: 'us@example.test', url: service.url });
    const call = () =>
      attempt(provider, {
        destination: { channel: 'email', address: 'a@example.test' },
        content: { subject: 's', text: 't' },
      });
    const first = call();
    await expect.poll(() => service.requests.length).toBe(1);
    expect((await call()).outcome.kind).toBe('not-accepted');
    const { outcome } = await first;
    expect(outcome.kind).toBe('sent');
    expect((await call()).outcome).toEqual(outcome);
    expect([service.sent.size, service.otherPayloads()]).toEqual([1, 0]);
    await service.stop();
  });
});

describe('a script of faults', () => {
  it('is the same for the same seed, over HTTP and over SMTP', async () => {
    const draw = (seed: number): string[] => {
      const script = faultShares({ seed, shares: [[0.5, { kind: 'cut' }]] });
      return Array.from({ length: 50 }, () => script.next().kind);
    };
    expect(draw(1)).toEqual(draw(1));
    expect(draw(1)).not.toEqual(draw(2));
    const server = await startSmtpCounterpart();
    const greetings = async (seed: number): Promise<string[]> => {
      server.script(smtpFaultShares({ seed, shares: [[0.5, { at: 'greeting', does: 'close' }]] }));
      const heard: string[] = [];
      for (let count = 0; count < 12; count += 1) heard.push(await greeting(server.port));
      return heard;
    };
    const once = await greetings(7);
    expect(new Set(once).size).toBe(2);
    expect(await greetings(7)).toEqual(once);
    await server.stop();
  });
});

/** The first line of a connection, or nothing when it is closed before. */
function greeting(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(port, '127.0.0.1');
    let heard = '';
    socket.on('data', (bytes) => {
      heard += bytes.toString();
      if (heard.includes('\r\n')) socket.end();
    });
    socket.on('close', () => resolve(heard));
    socket.on('error', reject);
  });
}
