/**
 * Notifications of `headgate start` where no configuration is given: four kinds on real adapters, whose provider is a
 * local counterpart that misbehaves a little. Nothing leaves the machine.
 */
import { randomBytes } from 'node:crypto';
import { silentLog } from '../../log.js';
import { createResendProvider, createTwilioProvider, defineKinds } from '../../notify/index.js';
import type { NotifyConfiguration } from '../notify/load.js';
import { startCounterpart } from './counterpart.js';

export const demoKinds = defineKinds({
  otp: {
    delivery: 'at-least-once',
    channels: ['sms'],
    deadline: '15s',
    attemptsMax: 3,
    retryAfter: '2s',
    priority: 'urgent',
    floor: 10,
    required: true,
    secret: true,
    purpose: () => 'sign-in',
    templates: { sms: { text: 'Your code is {{ code }}' } },
  },
  order: {
    delivery: 'at-least-once',
    channels: ['email', 'inbox'],
    deadline: '1h',
    templates: {
      email: { subject: 'Order {{ number }}', text: 'We have your order {{ number }}. It leaves tomorrow.' },
      inbox: { title: 'Order {{ number }}', body: 'It leaves tomorrow.' },
    },
  },
  follow: {
    delivery: 'at-least-once',
    channels: ['inbox'],
    templates: { inbox: { title: 'A new follower', body: '{{ follower }} follows you' } },
    digest: {
      window: '10s',
      templates: {
        inbox: {
          title: '{{ count }} new followers',
          body: '{% for event in events %}{{ event.follower }} {% endfor %}follow you',
        },
      },
    },
  },
  promo: {
    delivery: 'at-most-once',
    channels: ['email'],
    templates: {
      email: { subject: 'New: {{ what }}', text: 'Have a look at {{ what }}. {{ unsubscribe_url }}' },
    },
  },
});

/** The faults of every run come in the same order. */
const seed = 1;
/** A provider that says nothing is given up after this. */
const timeoutMs = 2_000;

export interface NotifyDemo {
  configuration(address: string): NotifyConfiguration;
  stop(): Promise<void>;
}

export async function startNotifyDemo(): Promise<NotifyDemo> {
  const authToken = randomBytes(16).toString('hex');
  const { url, stop } = await startCounterpart({ authToken, random: seededRandom(seed) });
  return {
    stop,
    configuration: (address) => ({
      kinds: demoKinds,
      // its faults are planned: the dashboard shows them, a terminal need not
      log: silentLog,
      poolSlots: 100,
      slots: 100,
      publicUrl: address,
      // the tokens of a demo end with its process
      unsubscribe: { url: `${address}/v1/unsubscribe`, secret: randomBytes(24).toString('hex') },
      providers: [
        createTwilioProvider({
          name: 'demo-sms',
          accountSid: 'AC-demo',
          authToken,
          from: '+15550100',
          url,
          statusUrl: `${address}/v1/receipts/demo-sms`,
          timeoutMs,
        }),
        createResendProvider({
          name: 'demo-email',
          apiKey: 'a-key-of-the-demo',
          from: 'Demo <demo@example.com>',
          url,
          timeoutMs,
        }),
      ],
    }),
  };
}

/** Evenly from 0 to 1, the same for the same seed (xorshift). */
function seededRandom(start: number): () => number {
  let state = start >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 4_294_967_296;
  };
}
