/**
 * What a sorted set does to ids: a 64-bit id as a score loses its last digits, and paging by a score that is not unique
 * loses posts; the fixed-width id itself, compared as text or held in a list, does neither.
 */
import { startRedisServer } from '../../../src/testing/redis-server.js';
import type { Experiment, Report } from '../../experiment.js';

const id = '9007199254740993';
const pageSize = 10;

async function run(): Promise<Report> {
  const server = await startRedisServer();
  const redis = server.connect();
  try {
    await redis.zadd('precision', id, 'post');
    const back = (await redis.zscore('precision', 'post')) ?? '';

    // 100 posts in 10 milliseconds, the millisecond as the score.
    const posts = Array.from({ length: 100 }, (_, index) =>
      String((1_750_000_000_000n << 20n) + BigInt(index)),
    );
    for (const [index, post] of posts.entries())
      await redis.zadd('times', 1_750_000_000_000 + Math.floor(index / 15), post);
    const byScore = new Set<string>();
    let below = '+inf';
    for (;;) {
      const page = await redis.zrevrangebyscore('times', below, '-inf', 'WITHSCORES', 'LIMIT', 0, pageSize);
      if (page.length === 0) break;
      for (let at = 0; at < page.length; at += 2) byScore.add(page[at] ?? '');
      below = `(${page.at(-1)}`;
    }

    // All with one score: ids of one width stand in the order of numbers, and a page begins behind an id.
    for (const post of posts) await redis.zadd('members', 0, post);
    const byMember = new Set<string>();
    let from = '+';
    for (;;) {
      const page = await redis.zrevrangebylex('members', from, '-', 'LIMIT', 0, pageSize);
      if (page.length === 0) break;
      for (const post of page) byMember.add(post);
      from = `(${page.at(-1)}`;
    }
    const lost = { byScore: posts.length - byScore.size, byMember: posts.length - byMember.size };
    return {
      tables: [
        { columns: ['a score put in', 'and read back'], rows: [[id, back]] },
        {
          columns: ['100 posts, 15 a millisecond, pages of 10 from beyond the last one', 'lost'],
          rows: [
            ['from beyond its score', lost.byScore],
            ['from beyond its fixed-width id', lost.byMember],
          ],
        },
      ],
      figures: { 'read back': back, 'lost by score': lost.byScore, 'lost by id': lost.byMember },
      reference: { 'read back': '9007199254740992', 'equal scores': 'boundary-exclusive paging loses posts' },
      durability: 'none: Redis without persistence',
      holds: back === '9007199254740992' && lost.byScore > 0 && lost.byMember === 0,
      verdict: `${id} comes back as ${back}; paging by score loses ${lost.byScore} of 100 posts, by id ${lost.byMember}`,
    };
  } finally {
    redis.disconnect();
    await server.stop();
  }
}

export const scorePrecision: Experiment = {
  name: 'score-precision',
  shows: 'a 64-bit id as the score of a sorted set, and paging by equal scores',
  run,
};
