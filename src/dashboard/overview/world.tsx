/** How many accounts, follows and posts there are: counted by the server when the page is opened, not every second. */
import { call } from '../api.js';
import { Facts } from '../facts.js';
import { formatCount } from '../format.js';
import { LoadingNotice, ProblemNotice } from '../notice.js';
import { useRepeated, useResource } from '../resource.js';

interface Stats {
  readonly accounts: number;
  readonly follows: number;
  readonly posts: number;
  readonly followers: { readonly median: number; readonly p99: number; readonly max: number };
}

const retryMs = 5_000;

export function World() {
  const stats = useResource<Stats>('stats', (signal) => call('/v1/feed/stats', { signal }));
  // A server that starts, stops or is away is told by the page as a whole; this only waits for it.
  const isAway = stats.problem !== undefined && [0, 503].includes(stats.problem.status);
  useRepeated(() => {
    if (isAway && !stats.loading) void stats.reload();
  }, retryMs);
  if (isAway) return null;
  return (
    <section aria-labelledby="overview-world">
      <h2 id="overview-world">Accounts and follows</h2>
      {stats.problem !== undefined && (
        <ProblemNotice problem={stats.problem} onRetry={() => void stats.reload()} />
      )}
      {stats.value === undefined ? (
        stats.loading && <LoadingNotice what="the graph" />
      ) : (
        <Counts {...stats.value} />
      )}
    </section>
  );
}

function Counts({ accounts, follows, posts, followers }: Stats) {
  const { median, p99, max } = followers;
  const facts: readonly (readonly [string, string])[] = [
    ['Accounts', formatCount(accounts)],
    ['Follows', formatCount(follows)],
    ['Posts', formatCount(posts)],
    ['Followers, median', formatCount(median)],
    ['Followers, 99th percentile', formatCount(p99)],
    ['Followers, most', formatCount(max)],
  ];
  return <Facts rows={facts} />;
}
