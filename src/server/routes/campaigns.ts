/**
 * Campaigns over HTTP: recipients in batches, each answered when it is taken; whoever is known is passed over, so a
 * batch whose answer was lost is simply sent again.
 */
import { Type } from 'typebox';
import { isHeadgateError } from '../../errors.js';
import type { Recipient } from '../../notify/index.js';
import { serverError } from '../problem.js';
import { answers, line } from '../schemas.js';
import { messageFields, messageOf } from './notifications.js';
import { typed, type RegisterRoutes } from './register.js';

const count = Type.Integer();
const states = ['running', 'paused', 'canceled', 'streamed'] as const;
const summaryFields = {
  id: Type.String(),
  kind: Type.String(),
  state: Type.String({ description: 'running, paused, canceled, or streamed: no batch is being taken.' }),
  taken: Type.Integer({ description: 'Recipients accepted; never goes back.' }),
  createdAt: Type.Number({ description: 'Unix milliseconds of the store.' }),
};
const progress = Type.Object({
  ...summaryFields,
  waiting: count,
  sent: count,
  failed: count,
  expired: count,
  suppressed: count,
  ambiguous: count,
});
const idParams = Type.Object({ id: line(100) });
/** A body has at most 1 MiB, so a recipient may take about a kilobyte. */
const recipientsMax = 1_000;
/** A pause that comes while a batch waits for its turn is answered after this. */
const pausedWaitMs = 2_000;

export const campaignRoutes: RegisterRoutes = async (app, { parts }) => {
  const tags = ['notify'];
  const at = typed(app);
  const campaigns = () => parts.notify().campaigns;
  const paused = (id: string) =>
    serverError(
      'campaign-paused',
      `the campaign ${JSON.stringify(id)} is paused; resume it and send the batch again`,
      {
        ids: { campaign: id },
      },
    );

  at.post(
    '/v1/campaigns',
    {
      schema: {
        tags,
        summary:
          'Begin a campaign, or give it more recipients; each has one notification however often it comes',
        body: Type.Object(
          {
            id: line(100, 'Your own name of it.'),
            kind: Type.String(),
            recipients: Type.Array(Type.Object(messageFields, { additionalProperties: false }), {
              maxItems: recipientsMax,
            }),
          },
          { additionalProperties: false },
        ),
        response: answers(200, progress),
      },
    },
    async ({ body }) => {
      const { id, kind } = body;
      const recipients = body.recipients.map(
        (recipient, index): Recipient => messageOf(recipient as never, `recipients[${index}].sendAt`),
      );
      const before = await campaigns()
        .progress(id)
        .catch((error: unknown) => {
          if (isHeadgateError(error, 'campaign-unknown')) return undefined;
          throw error;
        });
      if (before?.state === 'paused') throw paused(id);
      try {
        const signal = AbortSignal.timeout(pausedWaitMs);
        return await campaigns().run({ id, kind, recipients, batchSize: recipientsMax, signal });
      } catch (error) {
        if ((await campaigns().progress(id)).state === 'paused') throw paused(id);
        throw error;
      }
    },
  );

  at.get(
    '/v1/campaigns',
    {
      schema: {
        tags,
        summary: 'Campaigns, newest first; what became of the recipients stands at each one',
        querystring: Type.Object(
          {
            state: Type.Optional(Type.Union(states.map((state) => Type.Literal(state)))),
            before: Type.Optional(line(100, '`next` of the page before.')),
            limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
          },
          { additionalProperties: false },
        ),
        response: answers(
          200,
          Type.Object({
            campaigns: Type.Array(Type.Object(summaryFields)),
            next: Type.Optional(Type.String()),
          }),
        ),
      },
    },
    async ({ query }) => {
      const { limit = 50 } = query;
      const listed = await campaigns().list({ ...query, limit });
      const last = listed.length === limit ? listed.at(-1)?.id : undefined;
      return { campaigns: listed, ...(last === undefined ? {} : { next: last }) };
    },
  );

  at.get(
    '/v1/campaigns/:id',
    {
      schema: {
        tags,
        summary: 'How far a campaign has got',
        params: idParams,
        response: answers(200, progress),
      },
    },
    async ({ params }) => campaigns().progress(params.id),
  );

  for (const [move, summary] of [
    ['pause', 'Hold the stream and what waits; deadlines stand still'],
    ['resume', 'Go on'],
    ['cancel', 'End what waits; what is being sent keeps its outcome'],
  ] as const) {
    at.post(
      `/v1/campaigns/:id/${move}`,
      { schema: { tags, summary, params: idParams, response: answers(200, progress) } },
      async ({ params }) => campaigns()[move](params.id),
    );
  }
};
