import { describe, expect, it } from 'vitest';
import { formatRoute, parseRoute, type Route } from './route.js';

const hardIds = ['a', 'a/b', 'a?b#c', '100 %', 'ü 漢 🚪', '..', 'messages', 'a+b&c=d'];

describe('an address of the dashboard', () => {
  it('comes back from its text whatever characters the ids hold', () => {
    for (const id of hardIds) {
      const routes: Route[] = [
        { page: 'queue', queue: id, state: 'errored', where: { [id]: id, other: '' }, after: id },
        { page: 'message', queue: id, id },
        { page: 'notification', id },
        { page: 'deliveries', state: 'expired', kind: id, user: id, before: id },
        { page: 'campaigns', state: 'paused', before: id },
        { page: 'campaign', id },
        { page: 'home', account: id, cursor: undefined },
        { page: 'home', account: id, cursor: { direction: 'before', value: id } },
      ];
      for (const route of routes) expect(parseRoute(formatRoute(route))).toEqual(route);
    }
  });

  it('is the overview when it is empty', () => {
    for (const hash of ['', '#', '#/']) expect(parseRoute(hash)).toEqual({ page: 'overview' });
  });

  it('shows pending messages when the state is missing or not one of the six', () => {
    expect(parseRoute('#/queues/q?state=lost')).toMatchObject({
      state: 'pending',
      where: {},
      after: undefined,
    });
  });

  it('is unknown, not an exception, when it is none of ours', () => {
    for (const hash of [
      '#/%E0%A4%A',
      '#/nowhere',
      '#/queues/a/b/c',
      '#/feed/a/b',
      '#/queues/q/messages/m/more',
    ]) {
      expect(parseRoute(hash)).toMatchObject({ page: 'unknown' });
    }
  });
});
