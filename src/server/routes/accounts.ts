/** Accounts and the relations between them: follows, requests, blocks, mutes, and their lists. */
import { Type } from 'typebox';
import { feedError, type AccountList, type AccountListRequest, type FollowPair } from '../../feed/index.js';
import { accountParams, answers, pageQuery, relationParams } from '../schemas.js';
import type { ServerParts } from '../parts.js';
import { typed, type RegisterRoutes } from './register.js';

const account = Type.Object({
  id: Type.String(),
  createdAt: Type.Number(),
  approvesFollowers: Type.Boolean(),
  followers: Type.Integer(),
  followees: Type.Integer(),
  mode: Type.String({
    description: 'push: posts are written into timelines; pull: they are merged at read.',
  }),
});
const accountList = Type.Object({
  accounts: Type.Array(Type.Object({ id: Type.String(), since: Type.Number() })),
  next: Type.Optional(Type.String()),
});
const mostFollowed = Type.Object({
  accounts: Type.Array(Type.Object({ id: Type.String(), followers: Type.Integer(), mode: Type.String() })),
  next: Type.Optional(Type.String()),
});
const listQuery = Type.Object(
  { after: Type.Optional(Type.String()), limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000 })) },
  { additionalProperties: false },
);
const kind = Type.Object({
  kind: Type.String(),
  created: Type.Optional(Type.Boolean()),
  existed: Type.Optional(Type.Boolean()),
});
const relation = Type.Object({ kind: Type.String(), since: Type.Optional(Type.Number()) });

/** The lists of one account: path, and how the feed gives it. */
const lists: readonly {
  readonly path: string;
  readonly summary: string;
  read(parts: ServerParts, request: AccountListRequest): Promise<AccountList>;
}[] = [
  {
    path: 'followers',
    summary: 'Who follows the account',
    read: (parts, request) => parts.feed().followers(request),
  },
  {
    path: 'following',
    summary: 'Whom the account follows',
    read: (parts, request) => parts.feed().followees(request),
  },
  {
    path: 'blocks',
    summary: 'Whom the account blocks',
    read: (parts, request) => parts.feed().blocks(request),
  },
  { path: 'mutes', summary: 'Whom the account mutes', read: (parts, request) => parts.feed().mutes(request) },
  {
    path: 'requests',
    summary: 'Who waits for the approval of the account',
    read: (parts, request) => parts.feed().followRequests(request),
  },
];

const none = { kind: 'none' };

export function unknownAccount(id: string) {
  return feedError('account-unknown', `there is no account ${JSON.stringify(id)}`, {
    field: 'account',
    value: id,
  });
}

export const accountRoutes: RegisterRoutes = async (app, { parts }) => {
  const tags = ['feed'];
  const at = typed(app);
  const feed = () => parts.feed();

  at.put(
    '/v1/accounts/:account',
    {
      schema: {
        tags,
        summary: 'Make an account, or change its settings',
        params: accountParams,
        body: Type.Optional(
          Type.Union([
            Type.Null(),
            Type.Object(
              { approvesFollowers: Type.Optional(Type.Boolean()) },
              { additionalProperties: false },
            ),
          ]),
        ),
        response: { ...answers(200, account), 201: account },
      },
    },
    async ({ params, body }, reply) => {
      const outcome = await feed().putAccount({
        id: params.account,
        approvesFollowers: body?.approvesFollowers,
      });
      return reply.status(outcome.created ? 201 : 200).send(outcome.account);
    },
  );

  at.get(
    '/v1/accounts',
    {
      config: { admin: true },
      schema: {
        tags,
        summary:
          'Accounts by their followers, most first; follows of the last seconds may not be counted yet',
        querystring: Type.Object(
          { ...pageQuery.properties, order: Type.Literal('followers') },
          { additionalProperties: false },
        ),
        response: answers(200, mostFollowed),
      },
    },
    async ({ query: { limit, after } }) => {
      const { accounts, next } = await feed().mostFollowed({ limit, after });
      return { accounts: [...accounts], ...(next === undefined ? {} : { next }) };
    },
  );

  at.get(
    '/v1/accounts/:account',
    { schema: { tags, params: accountParams, response: answers(200, account) } },
    async ({ params }) => {
      const found = await feed().getAccount(params.account);
      if (!found) throw unknownAccount(params.account);
      return found;
    },
  );

  at.delete(
    '/v1/accounts/:account',
    { schema: { tags, summary: 'Erase an account', params: accountParams, response: answers(200, kind) } },
    async ({ params }) => feed().eraseAccount(params.account),
  );

  for (const list of lists) {
    at.get(
      `/v1/accounts/:account/${list.path}`,
      {
        schema: {
          tags,
          summary: list.summary,
          params: accountParams,
          querystring: listQuery,
          response: answers(200, accountList),
        },
      },
      async ({ params, query }) => {
        const { accounts, next } = await list.read(parts, { account: params.account, ...query });
        return { accounts: [...accounts], ...(next === undefined ? {} : { next }) };
      },
    );
  }

  const relationAt = (name: string) => `/v1/accounts/:account/${name}/:other`;
  const change = (summary: string) => ({
    schema: { tags, summary, params: relationParams, response: answers(200, kind) },
  });
  const ask = (summary: string) => ({
    schema: { tags, summary, params: relationParams, response: answers(200, relation) },
  });
  const pairOf = (params: { account: string; other: string }): FollowPair => ({
    follower: params.account,
    followee: params.other,
  });

  at.put(relationAt('following'), change('Follow'), async ({ params }) => {
    const outcome = await feed().follow(pairOf(params));
    if (outcome.kind === 'blocked')
      throw feedError('follow-blocked', 'one of the two blocks the other', {
        field: 'other',
        value: params.other,
      });
    return outcome;
  });
  at.delete(
    relationAt('following'),
    {
      schema: {
        ...change('Unfollow').schema,
        querystring: Type.Object(
          { keepHistory: Type.Optional(Type.Boolean()) },
          { additionalProperties: false },
        ),
      },
    },
    async ({ params, query }) => feed().unfollow({ ...pairOf(params), keepHistory: query.keepHistory }),
  );
  at.get(relationAt('following'), ask('Is it followed?'), async ({ params }) =>
    feed().followState(pairOf(params)),
  );

  at.put(relationAt('requests'), change('Approve a follower'), async ({ params }) =>
    feed().approveFollow({ follower: params.other, followee: params.account }),
  );
  at.delete(relationAt('requests'), change('Reject a follower'), async ({ params }) =>
    feed().rejectFollow({ follower: params.other, followee: params.account }),
  );

  at.put(relationAt('blocks'), change('Block'), async ({ params }) =>
    feed().block({ blocker: params.account, blocked: params.other }),
  );
  at.delete(relationAt('blocks'), change('Unblock'), async ({ params }) =>
    feed().unblock({ blocker: params.account, blocked: params.other }),
  );
  at.get(relationAt('blocks'), ask('Is it blocked?'), async ({ params }) =>
    (await feed().isBlocking({ blocker: params.account, blocked: params.other }))
      ? { kind: 'blocked' }
      : none,
  );

  at.put(relationAt('mutes'), change('Mute'), async ({ params }) =>
    feed().mute({ muter: params.account, muted: params.other }),
  );
  at.delete(relationAt('mutes'), change('Unmute'), async ({ params }) =>
    feed().unmute({ muter: params.account, muted: params.other }),
  );
  at.get(relationAt('mutes'), ask('Is it muted?'), async ({ params }) =>
    (await feed().isMuting({ muter: params.account, muted: params.other })) ? { kind: 'muted' } : none,
  );

  at.post(
    '/v1/follows',
    {
      schema: {
        tags,
        summary: 'Follow up to 1,000 times; each is answered by itself',
        body: Type.Object(
          {
            follows: Type.Array(
              Type.Object(
                { follower: Type.String(), followee: Type.String() },
                { additionalProperties: false },
              ),
              { minItems: 1, maxItems: 1_000 },
            ),
          },
          { additionalProperties: false },
        ),
        response: answers(
          200,
          Type.Object({
            follows: Type.Array(
              Type.Object({
                kind: Type.String(),
                created: Type.Optional(Type.Boolean()),
                code: Type.Optional(Type.String()),
                message: Type.Optional(Type.String()),
              }),
            ),
          }),
        ),
      },
    },
    async ({ body }) => ({ follows: await feed().followMany(body.follows) }),
  );
};
