/** For those who run notifications: the kinds in force, the providers and their breakers, the ledger, and a preview. */
import { Type } from 'typebox';
import { notifyError, type AnyKind, type JsonObject, type Notify } from '../../notify/index.js';
import { answers } from '../schemas.js';
import { channelSchema } from './notifications.js';
import { typed, type RegisterRoutes } from './register.js';

const kindSchema = Type.Object({
  name: Type.String(),
  channels: Type.Array(channelSchema, {
    description: 'Empty when this server has no definition of the kind and cannot send it.',
  }),
  digest: Type.Boolean(),
  delivery: Type.String(),
  deadlineMs: Type.Number(),
  attemptsMax: Type.Integer(),
  retryAfterMs: Type.Number(),
  retryAfterMaxMs: Type.Number(),
  priority: Type.String(),
  floor: Type.Integer(),
  required: Type.Boolean(),
  secret: Type.Boolean(),
  changeProvider: Type.Boolean(),
  keyKeptMs: Type.Number(),
  limits: Type.Array(Type.Object({ per: Type.String(), count: Type.Integer(), windowMs: Type.Number() }), {
    description: 'How many one user, or one address (`destination`), may be sent within a window.',
  }),
});
const duration = Type.Union([Type.Number(), Type.String()], {
  description: "Milliseconds, or a text such as '15s'.",
});
const kindChange = Type.Object(
  {
    delivery: Type.Optional(Type.Union([Type.Literal('at-least-once'), Type.Literal('at-most-once')])),
    deadline: Type.Optional(duration),
    attemptsMax: Type.Optional(Type.Integer()),
    retryAfter: Type.Optional(duration),
    retryAfterMax: Type.Optional(duration),
    priority: Type.Optional(Type.String()),
    floor: Type.Optional(Type.Integer()),
    required: Type.Optional(Type.Boolean()),
    secret: Type.Optional(Type.Boolean()),
    changeProvider: Type.Optional(Type.Boolean()),
    keyKept: Type.Optional(duration),
    limits: Type.Optional(
      Type.Array(
        Type.Object(
          {
            per: Type.Union([Type.Literal('user'), Type.Literal('destination')]),
            count: Type.Integer(),
            window: duration,
          },
          { additionalProperties: false },
        ),
      ),
    ),
  },
  { additionalProperties: false },
);
const count = Type.Integer();
export const ledgerSchema = Type.Object(
  {
    accepted: count,
    waiting: count,
    sent: count,
    failed: count,
    expired: count,
    suppressed: count,
    ambiguous: count,
  },
  {
    description: 'Deliveries; the parts sum up to `accepted` at every moment. Being sent counts as waiting.',
  },
);

function definitionOf(notify: Notify, name: string): AnyKind | undefined {
  const definitions = notify.definitions();
  return Object.hasOwn(definitions, name) ? definitions[name] : undefined;
}

export const notifyOperatingRoutes: RegisterRoutes = async (app, { parts }) => {
  const tags = ['notify'];
  const at = typed(app);
  const withDefinition = <Policy extends { readonly name: string }>(policy: Policy) => {
    const definition = definitionOf(parts.notify(), policy.name);
    return {
      ...policy,
      channels: [...(definition?.channels ?? [])],
      digest: definition?.digest !== undefined,
    };
  };

  at.get(
    '/v1/kinds',
    {
      schema: {
        tags,
        summary: 'The kinds in force, as every worker obeys them',
        response: answers(200, Type.Object({ kinds: Type.Array(kindSchema) })),
      },
    },
    async () => ({ kinds: (await parts.notify().kinds()).map(withDefinition) }),
  );

  at.patch(
    '/v1/kinds/:kind',
    {
      config: { admin: true },
      schema: {
        tags,
        summary: 'Change a kind for every worker; kept over restarts',
        params: Type.Object({ kind: Type.String() }),
        body: kindChange,
        response: answers(200, kindSchema),
      },
    },
    async ({ params, body }) =>
      withDefinition(await parts.notify().changeKind(params.kind, body as Partial<AnyKind>)),
  );

  at.post(
    '/v1/kinds/:kind/preview',
    {
      schema: {
        tags,
        summary: 'The message as a channel would show it; nothing is sent',
        params: Type.Object({ kind: Type.String() }),
        body: Type.Object(
          {
            channel: channelSchema,
            data: Type.Record(Type.String(), Type.Unknown()),
            locale: Type.Optional(Type.String()),
          },
          { additionalProperties: false },
        ),
        response: answers(200, Type.Object({ content: Type.Record(Type.String(), Type.Unknown()) })),
      },
    },
    async ({ params, body }) => ({
      content: await parts
        .notify()
        .preview({ ...body, data: body.data as JsonObject, kind: params.kind } as never),
    }),
  );

  at.get(
    '/v1/providers',
    {
      schema: {
        tags,
        summary: 'Providers, and whether each may be called now',
        response: answers(
          200,
          Type.Object({
            providers: Type.Array(
              Type.Object({
                name: Type.String(),
                channel: channelSchema,
                open: Type.Boolean({ description: 'It may be called now.' }),
                reason: Type.Optional(Type.String()),
              }),
            ),
          }),
        ),
      },
    },
    async () => ({ providers: await parts.notify().providers() }),
  );

  at.get(
    '/v1/ledger',
    {
      schema: {
        tags,
        summary: 'What was accepted, and what became of it',
        querystring: Type.Object({ kind: Type.Optional(Type.String()) }, { additionalProperties: false }),
        response: answers(200, ledgerSchema),
      },
    },
    async ({ query }) => {
      const { kind } = query;
      if (kind === undefined) return parts.notify().ledger();
      const kinds = await parts.notify().kinds();
      if (!kinds.some(({ name }) => name === kind))
        throw notifyError('kind-unknown', `no kind ${JSON.stringify(kind)} is defined`, {
          field: 'kind',
          value: kind,
        });
      return parts.notify().ledger({ kind });
    },
  );
};
