/** The shape of a route plug-in: it gets the app and the parts, and adds its routes. */
import type { FastifyInstance } from 'fastify';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { ApiKey } from '../auth.js';
import type { Live } from '../live.js';
import type { ServerParts } from '../parts.js';

export interface RouteContext {
  readonly parts: ServerParts;
  readonly live: Live;
  /** None: whoever reaches the server may do everything. */
  readonly apiKeys: readonly ApiKey[];
}

export type RegisterRoutes = (app: FastifyInstance, context: RouteContext) => Promise<void>;

/** The app with request types that follow from the schemas. */
export function typed(app: FastifyInstance) {
  return app.withTypeProvider<TypeBoxTypeProvider>();
}
