/**
 * What comes from outside without a key of ours: receipts, which the provider has signed, and unsubscribe links, which
 * we have. Both are taken as the exact bytes that were sent.
 */
import { Type } from 'typebox';
import { isHeadgateError } from '../../errors.js';
import type { Subscription } from '../../notify/index.js';
import { serverError } from '../problem.js';
import { answers } from '../schemas.js';
import { typed, type RegisterRoutes } from './register.js';

const config = { access: 'open' } as const;
const tokenQuery = Type.Object({ token: Type.String({ maxLength: 4_096 }) });

export const receiptRoutes: RegisterRoutes = async (app, { parts }) => {
  const tags = ['notify'];

  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    const at = typed(scope);

    at.post(
      '/v1/receipts/:provider',
      {
        config,
        schema: {
          tags,
          summary: "A provider's report about what it took; needs the provider's own signature, and no key",
          params: Type.Object({ provider: Type.String() }),
          response: answers(200, Type.Object({ matched: Type.Integer() })),
        },
      },
      async (request) => {
        const { provider } = request.params;
        const base = parts.notifyPublicUrl() ?? `${request.protocol}://${request.headers.host ?? ''}`;
        const headers = Object.fromEntries(
          Object.entries(request.headers).map(([name, value]) => [
            name,
            Array.isArray(value) ? value.join(', ') : value,
          ]),
        );
        const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
        const { status, matched } = await parts
          .notify()
          .receive(provider, { url: `${base}${request.raw.url ?? ''}`, headers, body });
        if (status === 401)
          throw serverError('signature-invalid', `this was not signed by the provider ${provider}`, {
            field: 'signature',
          });
        return { matched };
      },
    );

    at.post(
      '/v1/unsubscribe',
      {
        config,
        schema: {
          tags,
          summary: 'One-click unsubscribe (RFC 8058): the link is the permission',
          querystring: tokenQuery,
        },
      },
      async ({ query }, reply) => {
        const { kind, channel } = await parts.notify().people.unsubscribe(query.token);
        return reply
          .headers(pageHeaders)
          .send(page('Unsubscribed', `<p>You get no more ${escapeHtml(kind)} messages by ${channel}.</p>`));
      },
    );
  });

  typed(app).get(
    '/v1/unsubscribe',
    {
      config,
      schema: {
        tags,
        summary: 'The page behind an unsubscribe link: asks, and changes nothing',
        querystring: tokenQuery,
      },
    },
    async ({ query }, reply) => {
      let subscription: Subscription;
      try {
        subscription = parts.notify().people.subscription(query.token);
      } catch (error) {
        if (!isHeadgateError(error, 'token-invalid')) throw error;
        return reply
          .status(error.status)
          .headers(pageHeaders)
          .send(
            page(
              'Not a valid link',
              '<p>This unsubscribe link is not whole. Try the one in the message.</p>',
            ),
          );
      }
      const { kind, channel } = subscription;
      return reply
        .headers(pageHeaders)
        .send(
          page(
            'Unsubscribe?',
            `<p>No more ${escapeHtml(kind)} messages by ${channel}?</p>` +
              '<form method="post"><input type="hidden" name="List-Unsubscribe" value="One-Click">' +
              '<button type="submit">Unsubscribe</button></form>',
          ),
        );
    },
  );
};

const pageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
} as const;

/** Names of kinds are of our own letters; this holds whatever they become. */
function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

function page(title: string, content: string): string {
  return (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">' +
    '<meta name="viewport" content="width=device-width, initial-scale=1">' +
    `<meta name="color-scheme" content="light dark"><title>${title}</title></head>` +
    `<body><main><h1>${title}</h1>${content}</main></body></html>`
  );
}
