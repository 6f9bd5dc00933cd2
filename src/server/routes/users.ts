/** Users as notifications know them: settings, destinations, preferences, and their in-app inbox with its live count. */
import { Type } from 'typebox';
import type { Destination, Notify, RegisteredDestination } from '../../notify/index.js';
import { refuseDeep } from '../json-depth.js';
import { answers, line } from '../schemas.js';
import { channelSchema, destinationSchema } from './notifications.js';
import { typed, type RegisterRoutes } from './register.js';

const userParams = Type.Object({
  user: line(200, "The caller's own id, percent-encoded."),
});
const localTime = Type.String({ description: 'Local time, such as 22:00.' });
const settingsFields = {
  locale: Type.Optional(line(35, 'BCP 47.')),
  timeZone: Type.Optional(Type.String({ description: 'IANA name. Default: UTC.' })),
  quietHours: Type.Optional(
    Type.Object(
      { from: localTime, until: localTime },
      { additionalProperties: false, description: 'What is not urgent is held until they end.' },
    ),
  ),
};
const settings = Type.Object(settingsFields, { additionalProperties: false });
const registered = Type.Object(
  {
    ...destinationSchema.properties,
    registeredAt: Type.Optional(Type.Number()),
    retired: Type.Optional(
      Type.String({ description: 'Why it is not called any more; given back by a PUT, it stays so.' }),
    ),
  },
  { additionalProperties: false },
);
const destinationList = Type.Object({ destinations: Type.Array(registered) });
const wish = {
  kind: Type.String({ description: '* means all.' }),
  channel: Type.Union([channelSchema, Type.Literal('*')]),
  enabled: Type.Boolean(),
};
const preferenceList = Type.Object({
  preferences: Type.Array(
    Type.Object({
      kind: Type.String(),
      channel: channelSchema,
      enabled: Type.Boolean(),
      required: Type.Boolean(),
    }),
  ),
});
const inboxEntry = Type.Object({
  id: Type.String(),
  kind: Type.String(),
  title: Type.String(),
  body: Type.String(),
  url: Type.Optional(Type.String()),
  createdAt: Type.Number(),
  seenAt: Type.Optional(Type.Number()),
  readAt: Type.Optional(Type.Number()),
});

const clock = (minutes: number): string =>
  `${String(Math.floor(minutes / 60)).padStart(2, '0')}:${String(minutes % 60).padStart(2, '0')}`;
const nameOf = ({ channel, address }: Destination): string => `${channel} ${address}`;

async function destinationsOf(notify: Notify, user: string): Promise<readonly RegisteredDestination[]> {
  return (await notify.people.get(user))?.destinations ?? [];
}

/** Makes the list the user's whole one. New ones first: stopped half-way, nobody is unreachable. */
async function replaceDestinations(
  notify: Notify,
  user: string,
  wanted: readonly (Destination & { readonly retired?: string })[],
): Promise<void> {
  const present = new Map((await destinationsOf(notify, user)).map((one) => [nameOf(one), one]));
  for (const { channel, address, details, retired } of wanted) {
    const destination = { channel, address, ...(details === undefined ? {} : { details }) };
    const known = present.get(nameOf(destination));
    const stays = known !== undefined && (known.retired === undefined || retired !== undefined);
    if (stays && JSON.stringify(known.details) === JSON.stringify(details)) continue;
    await notify.people.putDestination(user, destination);
  }
  const kept = new Set(wanted.map(nameOf));
  for (const [name, destination] of present)
    if (!kept.has(name)) await notify.people.deleteDestination(user, destination);
}

export const userRoutes: RegisterRoutes = async (app, { parts, live }) => {
  const tags = ['notify'];
  const at = typed(app);
  const notify = () => parts.notify();
  const path = (rest = '') => `/v1/users/:user${rest}`;

  at.get(
    path(),
    { schema: { tags, summary: 'Settings of a user', params: userParams, response: answers(200, settings) } },
    async ({ params }) => {
      const { locale, timeZone, quiet } = (await notify().people.get(params.user)) ?? {};
      const quietHours = quiet && { from: clock(quiet.from), until: clock(quiet.until) };
      return {
        ...(locale === undefined ? {} : { locale }),
        ...(timeZone === undefined ? {} : { timeZone }),
        ...(quietHours === undefined ? {} : { quietHours }),
      };
    },
  );
  at.put(
    path(),
    {
      schema: {
        tags,
        summary: 'Set language, time zone and quiet hours; what is left out is unset',
        params: userParams,
        body: settings,
        response: answers(200, settings),
      },
    },
    async ({ params, body }) => {
      await notify().people.put(params.user, body);
      return body;
    },
  );
  at.delete(
    path(),
    {
      schema: {
        tags,
        summary: 'Erase everything of a user but the suppression list, which names addresses',
        params: userParams,
        response: answers(200, Type.Object({ kind: Type.String() })),
      },
    },
    async ({ params }) => {
      await notify().people.erase(params.user);
      return { kind: 'erased' };
    },
  );

  at.get(
    path('/destinations'),
    {
      schema: {
        tags,
        summary: 'Where a user can be reached',
        params: userParams,
        response: answers(200, destinationList),
      },
    },
    async ({ params }) => ({ destinations: [...(await destinationsOf(notify(), params.user))] }) as never,
  );
  at.put(
    path('/destinations'),
    {
      schema: {
        tags,
        summary: 'Set where a user can be reached; a retired address that is given again is alive again',
        params: userParams,
        body: Type.Object(
          { destinations: Type.Array(registered, { maxItems: 100 }) },
          { additionalProperties: false },
        ),
        response: answers(200, destinationList),
      },
    },
    async ({ params, body }) => {
      refuseDeep('destinations', body.destinations);
      await replaceDestinations(notify(), params.user, body.destinations as never);
      return { destinations: [...(await destinationsOf(notify(), params.user))] } as never;
    },
  );

  at.get(
    path('/preferences'),
    {
      schema: {
        tags,
        summary: 'Every kind and channel, and whether it is on',
        params: userParams,
        response: answers(200, preferenceList),
      },
    },
    async ({ params }) => ({ preferences: await notify().people.preferences(params.user) }),
  );
  at.put(
    path('/preferences'),
    {
      schema: {
        tags,
        summary: 'Switch kinds and channels on or off; switching off ends what waits',
        params: userParams,
        body: Type.Object(
          {
            preferences: Type.Array(Type.Object(wish, { additionalProperties: false }), {
              minItems: 1,
              maxItems: 200,
            }),
          },
          { additionalProperties: false },
        ),
        response: answers(
          200,
          Type.Object({
            suppressed: Type.Array(Type.String(), { description: 'Ids of the deliveries that ended.' }),
          }),
        ),
      },
    },
    async ({ params, body }) => {
      const suppressed: string[] = [];
      for (const preference of body.preferences)
        suppressed.push(...(await notify().people.prefer(params.user, preference)).suppressed);
      return { suppressed };
    },
  );

  at.get(
    path('/inbox'),
    {
      schema: {
        tags,
        summary: 'The in-app inbox, newest first',
        params: userParams,
        querystring: Type.Object(
          {
            before: Type.Optional(line(200, '`next` of the page before.')),
            limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
          },
          { additionalProperties: false },
        ),
        response: answers(
          200,
          Type.Object({
            entries: Type.Array(inboxEntry),
            unread: Type.Integer(),
            next: Type.Optional(Type.String()),
          }),
        ),
      },
    },
    async ({ params, query }) => {
      const { before, limit = 50 } = query;
      const entries = await notify().inbox.list(params.user, { before, limit });
      const next = entries.length === limit ? entries.at(-1)?.id : undefined;
      const unread = await notify().inbox.unread(params.user);
      return { entries, unread, ...(next === undefined ? {} : { next }) };
    },
  );

  for (const as of ['seen', 'read'] as const) {
    at.post(
      path(`/inbox/${as}`),
      {
        schema: {
          tags,
          summary: `Mark entries as ${as}; without ids all of them`,
          params: userParams,
          body: Type.Object(
            { ids: Type.Optional(Type.Array(line(200), { maxItems: 1_000 })) },
            { additionalProperties: false },
          ),
          response: answers(200, Type.Object({ changed: Type.Integer(), unread: Type.Integer() })),
        },
      },
      async ({ params, body }) => {
        const { inbox } = notify();
        const mark = as === 'seen' ? inbox.markSeen : inbox.markRead;
        const changed = await mark(params.user, body.ids);
        return { changed, unread: await inbox.unread(params.user) };
      },
    );
  }

  at.get(
    path('/inbox/live'),
    {
      schema: {
        tags,
        summary: 'Server-sent events: `unread` now and whenever it changes',
        params: userParams,
      },
    },
    async ({ params }, reply) => {
      const gone = new AbortController();
      const counts = notify().inbox.live({ user: params.user, signal: gone.signal });
      const stream = live.open(reply.request, reply);
      stream.onClose(() => gone.abort());
      for await (const count of counts) stream.send('unread', count);
    },
  );
};
