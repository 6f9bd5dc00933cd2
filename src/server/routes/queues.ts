/** Queues over HTTP: which there are, how deep, what waits in them, and their configuration. */
import { Type } from 'typebox';
import { invalidInput } from '../../errors.js';
import type { Metadata, QueueConfiguration } from '../../queue/index.js';
import { answers, limitDefault } from '../schemas.js';
import { messageSchema } from './messages.js';
import { typed, type RegisterRoutes } from './register.js';

const queueParams = Type.Object({ queue: Type.String() });
const state = Type.Union([
  Type.Literal('invisible'),
  Type.Literal('pending'),
  Type.Literal('running'),
  Type.Literal('completed'),
  Type.Literal('canceled'),
  Type.Literal('errored'),
]);
/** A running message belongs to its holder. */
const purgeable = ['invisible', 'pending', 'completed', 'canceled', 'errored'] as const;
const depthSchema = Type.Object({
  invisible: Type.Integer(),
  pending: Type.Integer(),
  running: Type.Integer(),
  exact: Type.Boolean(),
  asOf: Type.Number(),
});
const configurationSchema = Type.Object(
  {
    type: Type.Object({
      kind: Type.Union([Type.Literal('simple'), Type.Literal('exclusive')]),
      key: Type.Optional(Type.String()),
    }),
    leaseMs: Type.Number(),
    delayMs: Type.Number(),
    attemptsMax: Type.Number(),
    retentionMs: Type.Object({ completed: Type.Number(), canceled: Type.Number(), errored: Type.Number() }),
    enqueueBlocked: Type.Boolean(),
    dequeueBlocked: Type.Boolean(),
    history: Type.String(),
  },
  { additionalProperties: true },
);

/** Reads `where.KEY=VALUE` pairs out of a query and refuses every name that is neither such a pair nor allowed. */
function whereOf(query: Record<string, unknown>, allowed: readonly string[] = []): Metadata {
  const pairs: [string, string][] = [];
  for (const [name, value] of Object.entries(query)) {
    if (allowed.includes(name)) continue;
    if (!name.startsWith('where.'))
      throw invalidInput(name, value, `one of ${[...allowed, 'where.KEY'].join(', ')}`);
    if (typeof value !== 'string') throw invalidInput(name, value, 'one value');
    pairs.push([name.slice('where.'.length), value]);
  }
  return Object.fromEntries(pairs);
}

export const queueRoutes: RegisterRoutes = async (app, { parts }) => {
  const tags = ['queues'];
  const at = typed(app);

  at.get(
    '/v1/queues',
    {
      schema: {
        tags,
        response: answers(
          200,
          Type.Object({
            queues: Type.Array(Type.Intersect([Type.Object({ queue: Type.String() }), depthSchema])),
          }),
        ),
      },
    },
    async () => {
      const names = await parts.queue().queues();
      const queues = await Promise.all(
        names.map(async (queue) => ({ queue, ...(await parts.queue().depth(queue)) })),
      );
      return { queues };
    },
  );

  at.get(
    '/v1/queues/:queue',
    {
      schema: {
        tags,
        params: queueParams,
        response: answers(
          200,
          Type.Object({ queue: Type.String(), depth: depthSchema, configuration: configurationSchema }),
        ),
      },
    },
    async ({ params: { queue } }) => ({
      queue,
      depth: await parts.queue().depth(queue),
      configuration: await parts.queue().configuration(queue),
    }),
  );

  at.put(
    '/v1/queues/:queue',
    {
      config: { admin: true },
      schema: {
        tags,
        params: queueParams,
        body: Type.Partial(configurationSchema),
        response: answers(200, configurationSchema),
      },
    },
    async ({ params: { queue }, body }) =>
      parts.queue().configure(queue, body as Partial<QueueConfiguration>),
  );

  at.get(
    '/v1/queues/:queue/depth',
    {
      schema: {
        tags,
        summary: 'Depth by state, of everything or where.KEY=VALUE',
        params: queueParams,
        response: answers(200, depthSchema),
      },
    },
    async ({ params: { queue }, query }) =>
      parts.queue().depth(queue, whereOf(query as Record<string, unknown>)),
  );

  at.get(
    '/v1/queues/:queue/messages',
    {
      schema: {
        tags,
        params: queueParams,
        querystring: Type.Object(
          {
            state: Type.Optional(state),
            limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
            after: Type.Optional(Type.String()),
            newestFirst: Type.Optional(
              Type.Boolean({ description: 'Of ended messages: those that were enqueued last come first.' }),
            ),
          },
          { additionalProperties: true, description: 'And where.KEY=VALUE, once for each pair.' },
        ),
        response: answers(
          200,
          Type.Object({ messages: Type.Array(messageSchema), next: Type.Optional(Type.String()) }),
        ),
      },
    },
    async ({ params: { queue }, query }) => {
      const where = whereOf(query, ['state', 'limit', 'after', 'newestFirst']);
      return parts.queue().list(queue, {
        state: query.state ?? 'pending',
        where,
        limit: query.limit ?? limitDefault,
        after: query.after,
        newestFirst: query.newestFirst ?? false,
      });
    },
  );

  at.post(
    '/v1/queues/:queue/requeue',
    {
      config: { admin: true },
      schema: {
        tags,
        summary: 'All errored messages, or those that match, wait again; in bounded steps',
        params: queueParams,
        body: Type.Object(
          { where: Type.Optional(Type.Record(Type.String(), Type.String())) },
          { additionalProperties: false },
        ),
        response: answers(200, Type.Object({ requeued: Type.Integer() })),
      },
    },
    async ({ params: { queue }, body }) => ({ requeued: await parts.queue().requeueAll(queue, body.where) }),
  );

  at.delete(
    '/v1/queues/:queue/messages',
    {
      config: { admin: true },
      schema: {
        tags,
        summary: 'Forget all messages of a state, in bounded steps',
        params: queueParams,
        querystring: Type.Object(
          { state: Type.Union(purgeable.map((name) => Type.Literal(name))) },
          { additionalProperties: false },
        ),
        response: answers(200, Type.Object({ purged: Type.Integer() })),
      },
    },
    async ({ params: { queue }, query }) => ({ purged: await parts.queue().purge(queue, query.state) }),
  );
};
