/** Operating the feed: how the graph is shaped, whether a home is what it should be, and putting it right. */
import { Type } from 'typebox';
import { accountParams, answers } from '../schemas.js';
import { typed, type RegisterRoutes } from './register.js';
import { unknownPost } from './posts.js';

const config = { admin: true } as const;
const verifyReport = Type.Object({
  reader: Type.String(),
  timeline: Type.String({ description: 'live, or none: served by pull.' }),
  missing: Type.Array(Type.String(), { description: 'Should be in the timeline and are not.' }),
  superfluous: Type.Array(Type.String(), { description: 'In the timeline and not shown; harmless.' }),
  checked: Type.Integer(),
});

export const feedRoutes: RegisterRoutes = async (app, { parts }) => {
  const tags = ['feed'];
  const at = typed(app);

  at.get(
    '/v1/feed/stats',
    {
      config,
      schema: {
        tags,
        summary: 'The shape of the graph, and the threshold that it suggests',
        response: answers(200, Type.Unknown()),
      },
    },
    async () => parts.feed().stats(),
  );

  at.post(
    '/v1/feed/vacuum',
    {
      config,
      schema: {
        tags,
        summary: 'Take out timelines of inactive readers and entries that nobody may see',
        response: answers(
          200,
          Type.Object({
            timelinesDropped: Type.Integer(),
            entriesDeleted: Type.Integer(),
            rowsDeleted: Type.Integer(),
          }),
        ),
      },
    },
    async () => parts.feed().vacuum(),
  );

  at.get(
    '/v1/accounts/:account/home/verify',
    {
      config,
      schema: {
        tags,
        summary: 'Recompute a home from the graph and show the difference',
        params: accountParams,
        response: answers(200, verifyReport),
      },
    },
    async ({ params }) => {
      const { missing, superfluous, ...report } = await parts.feed().verify(params.account);
      return { ...report, missing: [...missing], superfluous: [...superfluous] };
    },
  );

  at.post(
    '/v1/accounts/:account/home/rebuild',
    {
      config,
      schema: {
        tags,
        summary: 'Drop a timeline and build it again from the posts',
        params: accountParams,
        response: answers(200, Type.Object({ kind: Type.String(), entries: Type.Integer() })),
      },
    },
    async ({ params }) => parts.feed().rebuild(params.account),
  );

  at.get(
    '/v1/posts/:id/fan-out',
    {
      schema: {
        tags,
        summary: 'How far a post has come on its way to its followers',
        params: Type.Object({ id: Type.String() }),
        response: answers(200, Type.Unknown()),
      },
    },
    async ({ params }) => {
      const progress = await parts.feed().fanOutProgress(params.id);
      if (!progress) throw unknownPost(params.id);
      return progress;
    },
  );
};
