/** What Resend tells us of its e-mails: signed, and found by our reference where the answer to the call was lost. */
import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createResendProvider } from '../../src/notify/index.js';

const key = Buffer.from('a secret of the endpoint');
const provider = createResendProvider({
  apiKey: 'k',
  from: 'a@example.test',
  webhookSecrets: [`whsec_${key.toString('base64')}`],
});

function parse(event: object, { agoSeconds = 0, signedWith = key } = {}) {
  const body = JSON.stringify(event);
  const seconds = Math.floor(Date.now() / 1_000) - agoSeconds;
  const mac = createHmac('sha256', signedWith).update(`msg_1.${seconds}.${body}`).digest('base64');
  return provider.parseReceipts!({
    url: 'https://us.example.test/',
    headers: {
      'svix-id': 'msg_1',
      'svix-timestamp': String(seconds),
      'svix-signature': `v1,other v1,${mac}`,
    },
    body: Buffer.from(body),
  });
}

describe('receipts of Resend', () => {
  it.each([
    ['as an object', { reference: 'd-1', other: 'x' }, 'd-1'],
    [
      'as a list',
      [
        { name: 'other', value: 'x' },
        { name: 'reference', value: 'd-1' },
      ],
      'd-1',
    ],
    ['not at all', undefined, undefined],
  ])('carry our reference: tags %s', async (_how, tags, reference) => {
    expect(await parse({ type: 'email.delivered', data: { email_id: 'e1', tags } })).toEqual({
      kind: 'receipts',
      receipts: [
        { messageId: 'e1', reference, status: 'delivered', detail: 'email.delivered', retire: undefined },
      ],
    });
  });

  it.each([
    ['a hard bounce', 'email.bounced', { bounce: { type: 'Permanent' } }, 'email.bounced'],
    ['a full mailbox', 'email.bounced', { bounce: { type: 'Transient' } }, undefined],
    ['a complaint', 'email.complained', {}, 'email.complained'],
  ])('%s retires the address or not', async (_what, type, more, retire) => {
    expect(await parse({ type, data: { email_id: 'e1', ...more } })).toMatchObject({
      receipts: [{ retire }],
    });
  });

  it('that are forged, or of long ago, are refused; a word that is unknown is no receipt', async () => {
    const event = { type: 'email.delivered', data: { email_id: 'e1' } };
    expect(await parse(event, { signedWith: Buffer.from('another') })).toEqual({ kind: 'signature-invalid' });
    expect(await parse(event, { agoSeconds: 301 })).toEqual({ kind: 'signature-invalid' });
    expect(await parse({ ...event, type: 'email.never-heard-of' })).toEqual({
      kind: 'receipts',
      receipts: [],
    });
  });
});
