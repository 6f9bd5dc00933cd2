/** A reader's home: a page of it, and a live stream that says when to fetch again. */
import { Type } from 'typebox';
import { accountParams, answers, pageQuery } from '../schemas.js';
import { postFields } from './posts.js';
import { unknownAccount } from './accounts.js';
import { typed, type RegisterRoutes } from './register.js';

const item = Type.Object({
  ...postFields,
  why: Type.Object({
    source: Type.String({ description: 'own, pushed, pulled, overdue or store.' }),
    through: Type.String({ description: 'The account whose post or repost brought it here.' }),
    text: Type.String(),
  }),
  repostedBy: Type.Optional(
    Type.Object({ author: Type.String(), id: Type.String(), createdAt: Type.Number() }),
  ),
});

const home = Type.Object({
  items: Type.Array(item, { description: 'Newest first; full unless the end is reached.' }),
  next: Type.Optional(Type.String({ description: 'Cursor towards older; absent only at the end.' })),
  previous: Type.Optional(Type.String({ description: 'Cursor towards newer.' })),
  complete: Type.Boolean({
    description: 'False only when a source could not be asked or a hole could not be filled.',
  }),
  sources: Type.Object(
    {
      timeline: Type.String(),
      floor: Type.Optional(Type.String()),
      pulledAuthors: Type.Integer(),
      candidates: Type.Integer(),
      rounds: Type.Integer(),
    },
    { additionalProperties: true },
  ),
});

export const homeRoutes: RegisterRoutes = async (app, { parts, live }) => {
  const tags = ['feed'];
  const at = typed(app);

  at.get(
    '/v1/accounts/:account/home',
    {
      schema: {
        tags,
        summary: 'The newest visible posts of everybody the account follows, and its own',
        params: accountParams,
        querystring: Type.Object(
          {
            ...pageQuery.properties,
            before: Type.Optional(
              Type.String({ description: 'Cursor `previous` of a page; not together with `after`.' }),
            ),
          },
          { additionalProperties: false },
        ),
        response: answers(200, home),
      },
    },
    async ({ params, query }) => {
      const { items, next, previous, ...rest } = await parts
        .feed()
        .home({ reader: params.account, ...query });
      return {
        items: [...items],
        ...(next === undefined ? {} : { next }),
        ...(previous === undefined ? {} : { previous }),
        ...rest,
      };
    },
  );

  at.get(
    '/v1/accounts/:account/live',
    {
      schema: {
        tags,
        summary: 'Server-sent events: `changed` when the home may show something new',
        params: accountParams,
      },
    },
    async ({ params }, reply) => {
      if (!(await parts.feed().getAccount(params.account))) throw unknownAccount(params.account);
      const gone = new AbortController();
      const hints = parts.feed().live({ reader: params.account, signal: gone.signal });
      const stream = live.open(reply.request, reply);
      stream.onClose(() => gone.abort());
      for await (const hint of hints) stream.send('changed', hint);
    },
  );
};
