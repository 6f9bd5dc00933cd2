/** Notifications over HTTP: send once, look at what became of it and why, cancel what waits. */
import { Type } from 'typebox';
import { invalidInput } from '../../errors.js';
import {
  notifyError,
  type Destination,
  type JsonObject,
  type Notification,
  type SendOutcome,
  type SendRequest,
} from '../../notify/index.js';
import { refuseDeep } from '../json-depth.js';
import { answers, line } from '../schemas.js';
import { serverError } from '../problem.js';
import { typed, type RegisterRoutes } from './register.js';

export const channelSchema = Type.Union([
  Type.Literal('email'),
  Type.Literal('sms'),
  Type.Literal('push'),
  Type.Literal('webhook'),
  Type.Literal('inbox'),
]);
const state = Type.Union(
  ['waiting', 'sending', 'ambiguous', 'failed', 'expired', 'suppressed', 'sent'].map((name) =>
    Type.Literal(name),
  ),
);

export const destinationSchema = Type.Object(
  {
    channel: channelSchema,
    address: Type.String({
      description: 'E-mail address, E.164 number, push token, URL, or the user for the inbox.',
    }),
    details: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: 'What the channel needs beside: push wants `platform`.',
      }),
    ),
  },
  { additionalProperties: false },
);

/** The end of the year 9999. */
const timeMax = 253_402_300_799_999;

/** What `send` takes, but for the key. */
export const messageFields = {
  user: line(200, "The caller's own id."),
  data: Type.Record(Type.String(), Type.Unknown(), { description: 'What the templates of the kind show.' }),
  to: Type.Optional(
    Type.Array(destinationSchema, {
      description: "Default: the user's registered destinations on the channels of the kind.",
      minItems: 1,
      maxItems: 1_000,
    }),
  ),
  sendAt: Type.Optional(
    Type.Union([Type.Number({ minimum: 0, maximum: timeMax }), Type.String()], {
      description: 'Not before: unix milliseconds, or ISO 8601 with its zone. Default: now.',
    }),
  ),
  locale: Type.Optional(line(35, "BCP 47. Default: the user's.")),
};

interface MessageBody {
  readonly user: string;
  readonly data: Record<string, unknown>;
  readonly to?: unknown;
  readonly sendAt?: number | string;
  readonly locale?: string;
}

/** JSON has been parsed by the server, so what it holds is JSON. */
export function messageOf(body: MessageBody, field = 'sendAt'): Omit<SendRequest, 'key'> {
  const { user, data, to, sendAt, locale } = body;
  refuseDeep('data', data);
  refuseDeep('to', to);
  return {
    user,
    data: data as JsonObject,
    ...(to === undefined ? {} : { to: to as readonly Destination[] }),
    ...(sendAt === undefined ? {} : { sendAt: timeOf(field, sendAt) }),
    ...(locale === undefined ? {} : { locale }),
  };
}

function timeOf(field: string, value: number | string): number {
  if (typeof value === 'number') return value;
  const ms = /^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:?\d\d)$/.test(value) ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(ms))
    throw invalidInput(field, value, 'unix milliseconds, or a time such as 2030-01-31T09:00:00Z');
  return ms;
}

const summary = Type.Object({
  id: Type.String(),
  channel: channelSchema,
  address: Type.String(),
  state,
});
const sendAnswer = Type.Object({
  id: Type.String(),
  duplicate: Type.Boolean({ description: 'The key was known; nothing has changed.' }),
  state,
  deliveries: Type.Array(summary),
});

const deliveryFields = {
  ...summary.properties,
  notification: Type.String(),
  kind: Type.String(),
  user: Type.String(),
  reason: Type.Optional(Type.String({ description: 'Why it is in this state; never content.' })),
  attempts: Type.Integer({ description: 'Requests that may have reached a provider.' }),
  provider: Type.Optional(Type.String()),
  messageId: Type.Optional(Type.String()),
  receipt: Type.String({ description: 'none, queued, sent, undelivered or delivered.' }),
  cost: Type.Optional(Type.Number()),
  runAfter: Type.Number(),
  expiresAt: Type.Number(),
  createdAt: Type.Number(),
  finishedAt: Type.Optional(Type.Number()),
};
const delivery = Type.Object(deliveryFields, { description: 'Times are unix milliseconds of the store.' });
const historyEntry = Type.Object({
  at: Type.Number(),
  event: Type.String(),
  attempt: Type.Optional(Type.Integer()),
  provider: Type.Optional(Type.String()),
  detail: Type.Optional(Type.String()),
});
const notification = Type.Object({
  id: Type.String(),
  user: Type.String(),
  kind: Type.String(),
  key: Type.String(),
  createdAt: Type.Number(),
  deliveries: Type.Array(Type.Object({ ...deliveryFields, history: Type.Array(historyEntry) })),
});
const idParams = Type.Object({ id: line(200) });

function answerOf({ kind, id, duplicate, state: present, deliveries }: SendOutcome) {
  if (kind === 'conflict')
    throw serverError('key-conflict', `the key is known with other content, as notification ${id}`, {
      field: 'key',
      expected: 'the same data and destinations as before, or another key',
      ids: { notification: id },
    });
  return { id, duplicate, state: present, deliveries: [...deliveries] };
}

export const notificationRoutes: RegisterRoutes = async (app, { parts }) => {
  const tags = ['notify'];
  const at = typed(app);

  const known = async (id: string): Promise<Notification> => {
    const found = await parts.notify().get(id);
    if (!found)
      throw notifyError('notification-unknown', `there is no notification ${JSON.stringify(id)}`, {
        field: 'id',
        value: id,
      });
    return found;
  };

  at.post(
    '/v1/notifications',
    {
      schema: {
        tags,
        summary: 'Send once; 201 when it is new, 200 for the one that this user, kind and key made before',
        headers: Type.Object({
          'idempotency-key': Type.Optional(
            Type.String({ description: 'Stands for `key` where the body has none.' }),
          ),
        }),
        body: Type.Object(
          {
            kind: Type.String(),
            key: Type.Optional(
              line(200, 'The business key: the same user, kind and key is the same notification.'),
            ),
            ...messageFields,
            digestKey: Type.Optional(
              Type.Unknown({
                description:
                  'For a kind with a digest: the event joins those of this key instead of going out alone.',
              }),
            ),
          },
          { additionalProperties: false },
        ),
        response: { ...answers(200, sendAnswer), 201: sendAnswer },
      },
    },
    async ({ body, headers }, reply) => {
      const key = body.key ?? headers['idempotency-key'];
      if (key === undefined)
        throw invalidInput('key', undefined, 'a value (it is required), or the header Idempotency-Key');
      refuseDeep('digestKey', body.digestKey);
      const request = { ...messageOf(body as MessageBody), key };
      const outcome =
        'digestKey' in body
          ? await parts.notify().digests.add(body.kind, { ...request, digestKey: body.digestKey as never })
          : await parts.notify().send(body.kind, request);
      return reply.status(outcome.duplicate ? 200 : 201).send(answerOf(outcome));
    },
  );

  at.get(
    '/v1/notifications/:id',
    {
      schema: {
        tags,
        summary: 'A notification, its deliveries, and the history that tells why each is what it is',
        params: idParams,
        response: answers(200, notification),
      },
    },
    async ({ params }) => {
      const { deliveries, ...head } = await known(params.id);
      return {
        ...head,
        deliveries: deliveries.map(({ history, ...one }) => ({ ...one, history: [...history] })),
      };
    },
  );

  at.post(
    '/v1/notifications/:id/cancel',
    {
      schema: {
        tags,
        summary: 'End what waits; what is being sent keeps its outcome',
        params: idParams,
        response: answers(
          200,
          Type.Object({
            canceled: Type.Array(Type.String(), { description: 'Ids of the deliveries that ended.' }),
          }),
        ),
      },
    },
    async ({ params }) => {
      const { user, kind, key } = await known(params.id);
      return { canceled: [...(await parts.notify().cancel({ user, kind, key })).canceled] };
    },
  );

  at.get(
    '/v1/deliveries',
    {
      schema: {
        tags,
        summary: 'Deliveries, newest first',
        querystring: Type.Object(
          {
            user: Type.Optional(line(200)),
            kind: Type.Optional(line(40)),
            state: Type.Optional(state),
            before: Type.Optional(line(200, '`next` of the page before.')),
            limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
          },
          { additionalProperties: false },
        ),
        response: answers(
          200,
          Type.Object({ deliveries: Type.Array(delivery), next: Type.Optional(Type.String()) }),
        ),
      },
    },
    async ({ query }) => {
      const { limit = 50 } = query;
      const deliveries = await parts.notify().deliveries({ ...query, limit } as never);
      const last = deliveries.length === limit ? deliveries.at(-1)?.id : undefined;
      return { deliveries, ...(last === undefined ? {} : { next: last }) };
    },
  );
};
