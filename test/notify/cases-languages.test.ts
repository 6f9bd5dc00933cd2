/** In which language a message is: the request's, else the user's, by exact name, then by language, then the kind's own. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/index.js';
import { defineKinds } from '../../src/notify/index.js';
import { testDatabases } from '../database/test-databases.js';
import { openWorld, programmableProvider, untilEnded, type World } from './world.js';

const kinds = defineKinds({
  hello: {
    delivery: 'at-least-once',
    channels: ['email', 'sms'],
    templates: { email: { subject: 'Hello {{ name }}', text: 'x' }, sms: { text: 'Hello {{ name }}' } },
    locales: {
      de: { email: { subject: 'Hallo {{ name }}', text: 'x' }, sms: { text: 'Hallo {{ name }}' } },
      'de-CH': { sms: { text: 'Grüezi {{ name }}' } },
    },
  },
});

describe('the language of a message', () => {
  let database: Database;
  let world: World<typeof kinds>;
  const email = programmableProvider('email');
  const sms = programmableProvider('sms');
  beforeAll(async () => {
    database = await testDatabases()[0]!.open();
    world = await openWorld({ database, providers: [email, sms], kinds });
    await world.notify.people.put('swiss', { locale: 'de-CH' });
  });
  afterAll(async () => {
    await world.stop();
    await database.close();
  });

  it.each<[string, { user: string; locale?: string }, string, string]>([
    ['the user’s, exactly', { user: 'swiss' }, 'Grüezi Ann', 'Hallo Ann'],
    ['the request’s, before the user’s', { user: 'swiss', locale: 'de-AT' }, 'Hallo Ann', 'Hallo Ann'],
    ['one that nobody wrote', { user: 'swiss', locale: 'fr' }, 'Hello Ann', 'Hello Ann'],
    ['of somebody of whom nothing is known', { user: 'nobody' }, 'Hello Ann', 'Hello Ann'],
  ])('is %s; the preview is what is sent', async (_whose, request, text, subject) => {
    const number = `+4179${String(1_000_000 + email.answers.size)}`;
    const address = `${request.user}-${request.locale ?? 'own'}@example.test`;
    email.answers.set(address, [{ kind: 'sent' }]);
    const data = { name: 'Ann' };
    const { deliveries } = await world.notify.send('hello', {
      ...request,
      key: address,
      data,
      to: [
        { channel: 'sms', address: number },
        { channel: 'email', address },
      ],
    });
    const worker = world.notify.worker({ slots: 2, floors: false });
    await worker.start();
    await untilEnded(
      world.notify,
      deliveries.map(({ id }) => id),
    );
    await worker.stop();
    expect(sms.calls(number).map(({ content }) => content['text'])).toEqual([text]);
    expect(email.calls(address).map(({ content }) => content['subject'])).toEqual([subject]);
    const locale = request.locale ?? (request.user === 'swiss' ? 'de-CH' : 'en');
    const shown = await world.notify.preview({ kind: 'hello', channel: 'sms', data, locale });
    expect(shown).toEqual({ text });
  });
});
