/** What every caller meets first: accounts, follows, posts, a home. */
import { describe, expect, test } from 'vitest';
import { idsOf, walkNewer, walkOlder } from '../../../src/testing/feed-world.js';
import { databases, useWorlds } from './worlds.js';

describe.each(databases)('feed on $name', (on) => {
  const world = useWorlds(on);

  test('a followed author’s post is in the home after its fan-out, and the own post at once', async () => {
    const { feed, accounts, open, drain, clock } = await world();
    await accounts('ada', 'ben');
    await feed.follow({ follower: 'ada', followee: 'ben' });
    await open('ada');
    const own = await feed.publish({ author: 'ada', text: 'mine' });
    const other = await feed.publish({ author: 'ben', text: 'hello' });
    clock.advance(1);
    expect((await feed.home({ reader: 'ada' })).items.map((item) => item.id)).toEqual([own.post.id]);
    await drain();
    const home = await feed.home({ reader: 'ada' });
    expect(home.items.map((item) => [item.text, item.why.source])).toEqual([
      ['hello', 'pushed'],
      ['mine', 'own'],
    ]);
    expect(home).toMatchObject({
      next: undefined,
      complete: true,
      sources: { timeline: 'live', floor: '0' },
    });
    expect(other.post.id).toMatch(/^\d{19}$/);
  });

  test('the same author and key again is the same post', async () => {
    const { feed, accounts } = await world();
    await accounts('ada');
    const first = await feed.publish({ author: 'ada', text: 'once', key: 'k1' });
    const again = await feed.publish({ author: 'ada', text: 'twice', key: 'k1' });
    expect(first.created).toBe(true);
    expect(again).toEqual({ post: first.post, created: false });
  });

  test('a walk gives every post once in both directions, across the end of the timeline', async () => {
    const { feed, accounts, open, drain, clock } = await world({ timeline: { entriesMax: 10, slack: 2 } });
    await accounts('r', 'a', 'b');
    await feed.follow({ follower: 'r', followee: 'a' });
    await feed.follow({ follower: 'r', followee: 'b' });
    const ids: string[] = [];
    for (let number = 0; number < 33; number += 1) {
      clock.advance(1);
      ids.unshift((await feed.publish({ author: number % 3 ? 'a' : 'b', text: `${number}` })).post.id);
      if (number === 20) await open('r');
    }
    await drain();
    for (const limit of [1, 7, 20, 100]) {
      const pages = await walkOlder(feed, 'r', limit);
      expect(idsOf(pages)).toEqual(ids);
      for (const page of pages.slice(0, -1)) expect(page.items.length).toBe(limit);
      const last = pages.at(-1)?.previous ?? '';
      const newer = await walkNewer(feed, 'r', limit, last);
      expect(idsOf(newer.toReversed())).toEqual(ids.slice(0, ids.length - (pages.at(-1)?.items.length ?? 0)));
    }
  });
});
