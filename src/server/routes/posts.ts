/** Posts over HTTP: publish, read, edit, delete, one account's posts, and all of them for moderators. */
import { Type } from 'typebox';
import { feedError, type DeleteOutcome, type EditOutcome, type NewPost } from '../../feed/index.js';
import { accountParams, answers, pageQuery } from '../schemas.js';
import { typed, type RegisterRoutes } from './register.js';

const data = Type.Unknown({ description: 'Any JSON, at most 32 KiB; opaque to the feed.' });
const visibility = Type.Union([Type.Literal('public'), Type.Literal('followers')]);

export const postFields = {
  id: Type.String({ description: '19 digits that sort by time.' }),
  author: Type.String(),
  key: Type.Optional(Type.String()),
  text: Type.Optional(Type.String()),
  data: Type.Optional(data),
  visibility,
  repostOf: Type.Optional(Type.String()),
  createdAt: Type.Number({ description: 'Unix milliseconds.' }),
  editedAt: Type.Optional(Type.Number()),
  mode: Type.String(),
  fanOutDone: Type.Boolean(),
};
const post = Type.Object(postFields);
const postList = Type.Object({ posts: Type.Array(post), next: Type.Optional(Type.String()) });
const postParams = Type.Object({ id: Type.String() });

const newPost = Type.Object(
  {
    author: Type.String(),
    text: Type.Optional(Type.String()),
    data: Type.Optional(data),
    visibility: Type.Optional(visibility),
    repostOf: Type.Optional(Type.String()),
    createdAt: Type.Optional(Type.Number()),
    key: Type.Optional(Type.String({ description: 'The same author and key again is the same post.' })),
  },
  { additionalProperties: false },
);

export function unknownPost(id: string) {
  return feedError('post-unknown', `there is no post ${JSON.stringify(id)}`, { field: 'id', value: id });
}

function refusal(outcome: EditOutcome | DeleteOutcome, id: string) {
  return outcome.kind === 'not-author'
    ? feedError('post-not-own', 'the post is by another author', { field: 'author', ids: { post: id } })
    : unknownPost(id);
}

export const postRoutes: RegisterRoutes = async (app, { parts }) => {
  const tags = ['feed'];
  const at = typed(app);

  at.post(
    '/v1/posts',
    {
      schema: {
        tags,
        summary: 'Publish; 201 for a new post, 200 for the one that this author and key made before',
        headers: Type.Object({
          'idempotency-key': Type.Optional(
            Type.String({ description: 'Stands for `key` where the body has none.' }),
          ),
        }),
        body: newPost,
        response: { ...answers(200, post), 201: post },
      },
    },
    async ({ body, headers }, reply) => {
      const key = body.key ?? headers['idempotency-key'];
      const outcome = await parts.feed().publish({ ...body, key } as NewPost);
      return reply.status(outcome.created ? 201 : 200).send(outcome.post);
    },
  );

  at.get(
    '/v1/posts/:id',
    {
      schema: {
        tags,
        params: postParams,
        querystring: Type.Object(
          { viewer: Type.Optional(Type.String({ description: 'Answer as this account may see it.' })) },
          { additionalProperties: false },
        ),
        response: answers(200, post),
      },
    },
    async ({ params, query }) => {
      const found = await parts.feed().getPost({ id: params.id, viewer: query.viewer });
      if (!found) throw unknownPost(params.id);
      return found;
    },
  );

  at.patch(
    '/v1/posts/:id',
    {
      schema: {
        tags,
        summary: 'Change text or data; null takes it off',
        params: postParams,
        body: Type.Object(
          {
            author: Type.Optional(Type.String()),
            text: Type.Optional(Type.Union([Type.String(), Type.Null()])),
            data: Type.Optional(data),
          },
          { additionalProperties: false },
        ),
        response: answers(200, post),
      },
    },
    async ({ params, body }) => {
      const outcome = await parts
        .feed()
        .editPost({ id: params.id, ...(body as Pick<NewPost, 'author' | 'text' | 'data'>) });
      if (outcome.kind !== 'edited') throw refusal(outcome, params.id);
      return outcome.post;
    },
  );

  at.delete(
    '/v1/posts/:id',
    {
      schema: {
        tags,
        params: postParams,
        querystring: Type.Object(
          {
            author: Type.Optional(Type.String({ description: 'Refuse unless the post is by this account.' })),
          },
          { additionalProperties: false },
        ),
        response: answers(200, Type.Object({ kind: Type.String(), existed: Type.Boolean() })),
      },
    },
    async ({ params, query }) => {
      const outcome = await parts.feed().deletePost({ id: params.id, author: query.author });
      if (outcome.kind !== 'deleted') throw refusal(outcome, params.id);
      return outcome;
    },
  );

  at.get(
    '/v1/posts',
    {
      config: { admin: true },
      schema: {
        tags,
        summary: 'All posts by time, for moderators',
        querystring: pageQuery,
        response: answers(200, postList),
      },
    },
    async ({ query }) => {
      const { posts, next } = await parts.feed().allPosts(query);
      return { posts: [...posts], ...(next === undefined ? {} : { next }) };
    },
  );

  at.get(
    '/v1/accounts/:account/posts',
    {
      schema: {
        tags,
        summary: 'Posts of one account, newest first',
        params: accountParams,
        querystring: Type.Object(
          { ...pageQuery.properties, viewer: Type.Optional(Type.String()) },
          { additionalProperties: false },
        ),
        response: answers(200, postList),
      },
    },
    async ({ params, query }) => {
      const { posts, next } = await parts.feed().accountPosts({ account: params.account, ...query });
      return { posts: [...posts], ...(next === undefined ? {} : { next }) };
    },
  );
};
