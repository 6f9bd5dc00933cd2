/** The OpenAPI 3.1 document, made of the same schemas that validate, at /openapi.json, and its page for people at /docs. */
import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import { version } from '../version.js';
import { sessionCookie } from './session.js';

export function registerDocument(app: FastifyInstance): void {
  app.register(swagger, {
    refResolver: {
      buildLocalReference: (json, _base, _fragment, index) =>
        typeof json['$id'] === 'string' ? json['$id'] : `schema-${index}`,
    },
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Headgate',
        version,
        description:
          'Queue, feed and notifications over HTTP. Ids in paths may hold any character, percent-encoded. A body has at most 1 MiB. ' +
          'Errors are problem+json with a stable code.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      components: {
        securitySchemes: {
          key: { type: 'http', scheme: 'bearer' },
          session: {
            type: 'apiKey',
            in: 'cookie',
            name: sessionCookie,
            description: 'Of a page that has signed in by POST /v1/session.',
          },
        },
      },
      tags: [
        { name: 'queues', description: 'Messages, leases and depth.' },
        { name: 'feed', description: 'Accounts, follows, posts and home.' },
        { name: 'notify', description: 'Notifications, users, campaigns, receipts.' },
        { name: 'operating', description: 'Health, readiness, metrics and the live overview.' },
      ],
    },
  });
  app.register(swaggerUi, { routePrefix: '/docs', staticCSP: true });
  app.get('/openapi.json', { schema: { hide: true } }, async () => app.swagger());
}
