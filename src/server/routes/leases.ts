/** What the holder of a lease does with it over HTTP: extend, complete, fail, release; a lost lease is answered 409. */
import { Type } from 'typebox';
import { queueError, type CompleteLease, type LeaseOutcome } from '../../queue/index.js';
import { answers } from '../schemas.js';
import { busyMessage, messageParams, newMessage, settled } from './messages.js';
import { typed, type RegisterRoutes } from './register.js';

const leaseToken = Type.String({ minLength: 1 });
const followUps = Type.Array(
  Type.Object(
    { queue: Type.String(), messages: Type.Array(newMessage, { maxItems: 1_000 }) },
    { additionalProperties: false },
  ),
  { maxItems: 100, description: 'Enqueued with the completion: either it and all of these, or nothing.' },
);

/** The one outcome of a batch of one, as an answer or as the error it stands for. */
function answerOf(outcome: LeaseOutcome | undefined, queue: string, id: string) {
  const ids = { queue, message: id };
  switch (outcome?.kind) {
    case 'done':
      return {
        id,
        state: outcome.state,
        version: outcome.version,
        ...(outcome.leaseUntil === undefined ? {} : { leaseUntil: outcome.leaseUntil }),
      };
    case 'canceled':
      throw queueError('message-canceled', `message "${id}" has been canceled`, { ids });
    case 'busy':
      throw busyMessage(queue, id);
    case 'refused':
      throw outcome.error;
    default:
      throw queueError('lease-lost', `the lease of message "${id}" is not held by this token`, {
        ids,
        field: 'leaseToken',
      });
  }
}

export const leaseRoutes: RegisterRoutes = async (app, { parts }) => {
  const tags = ['queues'];
  const at = typed(app);

  at.post(
    '/v1/queues/:queue/messages/:id/extend',
    {
      schema: {
        tags,
        params: messageParams,
        body: Type.Object(
          { leaseToken, leaseMs: Type.Optional(Type.Number()) },
          { additionalProperties: false },
        ),
        response: answers(200, settled),
      },
    },
    async ({ params: { queue, id }, body }) =>
      answerOf((await parts.queue().extend(queue, [{ id, ...body }]))[0], queue, id),
  );

  at.post(
    '/v1/queues/:queue/messages/:id/complete',
    {
      schema: {
        tags,
        summary: 'The work is done; what follows from it is enqueued in the same step',
        params: messageParams,
        body: Type.Object(
          { leaseToken, result: Type.Optional(Type.Unknown()), followUps: Type.Optional(followUps) },
          { additionalProperties: false },
        ),
        response: answers(200, settled),
      },
    },
    async ({ params: { queue, id }, body }) =>
      answerOf((await parts.queue().complete(queue, [{ id, ...body } as CompleteLease]))[0], queue, id),
  );

  at.post(
    '/v1/queues/:queue/messages/:id/fail',
    {
      schema: {
        tags,
        summary: 'Give up this attempt; without retryDelayMs the message is errored',
        params: messageParams,
        body: Type.Object(
          { leaseToken, error: Type.String(), retryDelayMs: Type.Optional(Type.Number()) },
          { additionalProperties: false },
        ),
        response: answers(200, settled),
      },
    },
    async ({ params: { queue, id }, body }) =>
      answerOf((await parts.queue().fail(queue, [{ id, ...body }]))[0], queue, id),
  );

  at.post(
    '/v1/queues/:queue/messages/:id/release',
    {
      schema: {
        tags,
        params: messageParams,
        body: Type.Object(
          {
            leaseToken,
            delayMs: Type.Optional(Type.Number()),
            refund: Type.Optional(Type.Boolean()),
          },
          { additionalProperties: false },
        ),
        response: answers(200, settled),
      },
    },
    async ({ params: { queue, id }, body }) =>
      answerOf((await parts.queue().release(queue, [{ id, ...body }]))[0], queue, id),
  );
};
