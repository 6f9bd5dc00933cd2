/** Messages over HTTP: enqueue and dequeue, one message, and what may be done with it by its id. */
import { Type } from 'typebox';
import { queueError, type NewMessage, type Queue } from '../../queue/index.js';
import { answers } from '../schemas.js';
import { typed, type RegisterRoutes } from './register.js';

const metadata = Type.Record(Type.String(), Type.String(), { description: 'String pairs, up to 16.' });
const payload = Type.Unknown({ description: 'Any JSON, at most 32 KiB.' });

export const newMessage = Type.Object(
  {
    id: Type.Optional(Type.String()),
    payload,
    priority: Type.Optional(
      Type.Number({ description: 'Safe integer, lower first; the norm is the deadline in unix ms.' }),
    ),
    metadata: Type.Optional(metadata),
    delayMs: Type.Optional(Type.Number()),
    attemptsMax: Type.Optional(Type.Number()),
    leaseMs: Type.Optional(Type.Number()),
    uniqueWhileLive: Type.Optional(
      Type.Boolean({ description: 'The id is free again as soon as the message has ended.' }),
    ),
    trace: Type.Optional(Type.String({ description: 'W3C traceparent, handed on untouched.' })),
  },
  { additionalProperties: false },
);

const enqueueAnswer = Type.Object({
  messages: Type.Array(
    Type.Object({
      id: Type.String(),
      created: Type.Boolean(),
      state: Type.Optional(Type.String()),
      error: Type.Optional(
        Type.Object({ code: Type.String(), detail: Type.String(), field: Type.Optional(Type.String()) }),
      ),
    }),
  ),
});

export const messageSchema = Type.Object(
  {
    queue: Type.String(),
    id: Type.String(),
    payload,
    metadata,
    priority: Type.Number(),
    state: Type.String(),
    attempts: Type.Integer(),
    attemptsMax: Type.Integer(),
    visibleAt: Type.Number(),
    leaseUntil: Type.Optional(Type.Number()),
    leaseToken: Type.Optional(Type.String()),
    version: Type.Integer(),
    enqueuedAt: Type.Number(),
    startedAt: Type.Optional(Type.Number()),
    finishedAt: Type.Optional(Type.Number()),
    result: Type.Optional(Type.Unknown()),
    error: Type.Optional(Type.String()),
    trace: Type.Optional(Type.String()),
  },
  { description: 'Times are unix milliseconds of the store.' },
);

export const settled = Type.Object({
  id: Type.String(),
  state: Type.String(),
  version: Type.Optional(Type.Integer()),
  leaseUntil: Type.Optional(Type.Number()),
});
const queueParams = Type.Object({ queue: Type.String() });
export const messageParams = Type.Object({ queue: Type.String(), id: Type.String() });

function unknownMessage(queue: string, id: string) {
  return queueError('message-unknown', `there is no message "${id}" in queue "${queue}"`, {
    ids: { queue, message: id },
    field: 'id',
    value: id,
  });
}

export function busyMessage(queue: string, id: string) {
  return queueError('message-busy', `message "${id}" is held by another operation; ask again`, {
    ids: { queue, message: id },
  });
}

export const messageRoutes: RegisterRoutes = async (app, { parts }) => {
  const tags = ['queues'];
  const at = typed(app);

  at.post(
    '/v1/queues/:queue/messages',
    {
      schema: {
        tags,
        summary: 'Enqueue up to 1,000 messages; each is answered by itself',
        params: queueParams,
        headers: Type.Object({ 'idempotency-key': Type.Optional(Type.String({ maxLength: 200 })) }),
        body: Type.Object(
          { messages: Type.Array(newMessage, { minItems: 1, maxItems: 1_000 }) },
          { additionalProperties: false },
        ),
        response: answers(200, enqueueAnswer),
      },
    },
    async (request) => {
      const key = request.headers['idempotency-key'];
      const messages = request.body.messages.map(
        (message, index) =>
          (key !== undefined && message.id === undefined
            ? { ...message, id: `${key}:${index}` }
            : message) as NewMessage,
      );
      const outcomes = await parts.queue().enqueue(request.params.queue, messages);
      const alone = outcomes.length === 1 ? outcomes[0] : undefined;
      if (alone?.kind === 'refused') throw alone.error;
      return {
        messages: outcomes.map((outcome) => {
          if (outcome.kind === 'enqueued')
            return { id: outcome.id, created: outcome.created, state: outcome.state };
          if (outcome.kind === 'conflict') {
            const detail = 'the id is known with another payload';
            return {
              id: outcome.id,
              created: false,
              state: outcome.state,
              error: { code: 'id-conflict', detail, field: 'id' },
            };
          }
          const { code, message: detail, field } = outcome.error;
          return {
            id: outcome.id,
            created: false,
            error: { code, detail, ...(field === undefined ? {} : { field }) },
          };
        }),
      };
    },
  );

  at.post(
    '/v1/queues/:queue/dequeue',
    {
      schema: {
        tags,
        summary: 'Lease the most urgent messages; a repeat with the same requestId gives the same leases',
        params: queueParams,
        body: Type.Object(
          {
            count: Type.Optional(Type.Number()),
            where: Type.Optional(metadata),
            leaseMs: Type.Optional(Type.Number()),
            waitMs: Type.Optional(Type.Number({ maximum: 30_000 })),
            requestId: Type.Optional(Type.String()),
            worker: Type.Optional(Type.String()),
          },
          { additionalProperties: false },
        ),
        response: answers(200, Type.Object({ messages: Type.Array(messageSchema) })),
      },
    },
    async ({ params: { queue }, body }, reply) => {
      const gone = new AbortController();
      reply.raw.once('close', () => gone.abort());
      const messages = await parts.queue().dequeue(queue, { ...body, signal: gone.signal });
      // Nobody is left to have them; whoever named the request may come back for them.
      if (gone.signal.aborted && body.requestId === undefined) await parts.queue().release(queue, messages);
      return { messages };
    },
  );

  at.post(
    '/v1/queues/:queue/messages/:id/cancel',
    { schema: { tags, params: messageParams, response: answers(200, settled) } },
    async ({ params: { queue, id } }) => {
      const outcome = (await parts.queue().cancel(queue, [id]))[0];
      if (outcome?.kind === 'canceled') return { id, state: 'canceled' };
      if (outcome?.kind === 'terminal') return { id, state: outcome.state };
      if (outcome?.kind === 'busy') throw busyMessage(queue, id);
      if (outcome?.kind === 'refused') throw outcome.error;
      throw unknownMessage(queue, id);
    },
  );

  at.get(
    '/v1/queues/:queue/messages/:id',
    { schema: { tags, params: messageParams, response: answers(200, messageSchema) } },
    async ({ params: { queue, id } }) => {
      const message = await parts.queue().get(queue, id);
      if (!message) throw unknownMessage(queue, id);
      return message;
    },
  );

  at.post(
    '/v1/queues/:queue/messages/:id/requeue',
    {
      schema: {
        tags,
        summary: 'An errored message waits again',
        params: messageParams,
        response: answers(200, settled),
      },
    },
    async ({ params: { queue, id } }) => {
      const outcome = (await parts.queue().requeue(queue, [id]))[0];
      if (outcome?.kind === 'busy') throw busyMessage(queue, id);
      if (outcome?.kind === 'refused') throw outcome.error;
      if (!outcome || !('state' in outcome)) throw unknownMessage(queue, id);
      return { id, state: outcome.state };
    },
  );

  at.get(
    '/v1/queues/:queue/messages/:id/history',
    {
      schema: {
        tags,
        summary: 'What happened to a message, in the order of its versions',
        params: messageParams,
        response: answers(200, Type.Object({ events: Type.Array(Type.Unknown()) })),
      },
    },
    async ({ params: { queue, id } }) => ({ events: await parts.queue().history(queue, id) }),
  );

  at.patch(
    '/v1/queues/:queue/messages/:id',
    {
      schema: {
        tags,
        summary: 'Change a message that waits',
        params: messageParams,
        body: Type.Object(
          {
            priority: Type.Optional(Type.Number()),
            visibleAt: Type.Optional(Type.Number({ description: 'Unix milliseconds of the store.' })),
            payload: Type.Optional(Type.Unknown()),
          },
          { additionalProperties: false },
        ),
        response: answers(200, settled),
      },
    },
    async ({ params: { queue, id }, body }) => {
      const change = { id, ...body } as Parameters<Queue['change']>[1][number];
      const outcome = (await parts.queue().change(queue, [change]))[0];
      switch (outcome?.kind) {
        case 'changed':
          return { id, state: outcome.state, version: outcome.version };
        case 'refused':
          throw outcome.error;
        case 'busy':
          throw busyMessage(queue, id);
        case 'not-waiting':
          throw queueError('message-not-waiting', `message "${id}" is ${outcome.state}`, {
            ids: { queue, message: id },
          });
        default:
          throw unknownMessage(queue, id);
      }
    },
  );
};
