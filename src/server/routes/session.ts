/** Signing in of the dashboard: an API key against a cookie, what it may do, and signing out. */
import { Type } from 'typebox';
import type { FastifyRequest } from 'fastify';
import { keyOf, requestKey } from '../auth.js';
import { serverError } from '../problem.js';
import { answers } from '../schemas.js';
import { sessionHeader, sessionOf } from '../session.js';
import { typed, type RegisterRoutes } from './register.js';

const config = { access: 'page', early: true } as const;
const session = Type.Object({
  required: Type.Boolean({ description: 'This server wants a key.' }),
  scope: Type.Optional(Type.String({ description: 'What the session or key may do; absent: signed out.' })),
});

/** A proxy that ends TLS says so; whoever lies about it makes only their own cookie useless. */
const isSecure = ({ headers, protocol }: FastifyRequest): boolean =>
  protocol === 'https' || headers['x-forwarded-proto'] === 'https';

export const sessionRoutes: RegisterRoutes = async (app, { apiKeys }) => {
  const tags = ['operating'];
  const at = typed(app);
  const required = apiKeys.length > 0;

  at.get(
    '/v1/session',
    {
      config,
      schema: {
        tags,
        summary: 'Whether a key is needed, and who is signed in',
        response: answers(200, session),
      },
    },
    async (request) => {
      const scope = required ? requestKey(request, apiKeys)?.scope : 'admin';
      return { required, ...(scope === undefined ? {} : { scope }) };
    },
  );

  at.post(
    '/v1/session',
    {
      config,
      schema: {
        tags,
        summary: 'Sign in with an API key: answers a cookie that scripts cannot read',
        body: Type.Object({ key: Type.String({ maxLength: 1_024 }) }, { additionalProperties: false }),
        response: answers(200, session),
      },
    },
    async (request, reply) => {
      if (!required) return { required, scope: 'admin' };
      const key = keyOf(request.body.key, apiKeys);
      if (key === undefined)
        throw serverError('unauthorized', 'this is not one of the API keys of this server', { field: 'key' });
      return reply
        .header('set-cookie', sessionHeader(sessionOf(key), { secure: isSecure(request) }))
        .header('cache-control', 'no-store')
        .send({ required, scope: key.scope });
    },
  );

  at.delete(
    '/v1/session',
    { config, schema: { tags, summary: 'Sign out', response: answers(200, session) } },
    async (request, reply) =>
      reply.header('set-cookie', sessionHeader('', { secure: isSecure(request) })).send({ required }),
  );
};
