/** `headgate feed …`: looks at the feed and puts it right, over the HTTP API. */
import type { Command } from 'commander';
import { clientCommands, type ClientRun } from '../client-commands.js';
import type { Environment, Flags } from '../config.js';
import { print, table } from '../output.js';
import { addFeedImport } from './feed-import.js';

interface Stats {
  readonly accounts: number;
  readonly follows: number;
  readonly posts: number;
  readonly liveTimelines: number;
  readonly timelineEntries: number;
  readonly pullAuthors: number;
  readonly followers: { readonly median: number; readonly p99: number; readonly max: number };
  readonly threshold: {
    readonly pullFrom: number;
    readonly pushBelow: number;
    readonly suggestedPullFrom: number;
  };
}

const asJson = (flags: Flags) => ({ json: flags['json'] === true });
const homePath = (reader: string) => `/v1/accounts/${encodeURIComponent(reader)}/home`;

function showStats({ followers, threshold, ...counts }: Stats): string {
  const { accounts, follows, posts, liveTimelines, timelineEntries, pullAuthors } = counts;
  return [
    table([{ accounts, follows, posts, liveTimelines, timelineEntries, pullAuthors }]),
    `followers of an account: median ${followers.median}, p99 ${followers.p99}, max ${followers.max}`,
    `pull from ${threshold.pullFrom} followers, push again below ${threshold.pushBelow}; the graph suggests ${threshold.suggestedPullFrom}`,
  ].join('\n');
}

const stats: ClientRun = async (client, flags) =>
  print(await client.get<Stats>('/v1/feed/stats'), asJson(flags), showStats);

const verify: ClientRun = async (client, flags, reader = '') => {
  const report = await client.get<{ missing: string[]; superfluous: string[]; checked: number }>(
    `${homePath(reader)}/verify`,
  );
  print(report, asJson(flags), ({ missing, superfluous, checked }) =>
    missing.length === 0
      ? `${checked} entries checked, none is missing (${superfluous.length} are not shown and harmless)`
      : `${checked} entries checked, missing: ${missing.join(', ')}`,
  );
};

const rebuild: ClientRun = async (client, flags, reader = '') => {
  const answer = await client.post<{ kind: string; entries: number }>(`${homePath(reader)}/rebuild`, {});
  print(answer, asJson(flags), ({ kind, entries }) => `${kind}, ${entries} entries`);
};

const vacuum: ClientRun = async (client, flags) => {
  print(await client.post<object>('/v1/feed/vacuum', {}), asJson(flags), (outcome) => table([outcome]));
};

export function addFeed(program: Command, environment: Environment): void {
  const feed = program.command('feed').description('look at the feed, and put it right');
  const add = clientCommands(feed, environment);
  add('stats', 'how the graph is shaped, and the threshold that it suggests', stats);
  add(
    'verify <reader>',
    "recompute a reader's home from the graph and show the difference; changes nothing",
    verify,
  );
  add('rebuild <reader>', "drop a reader's timeline and build it again from the posts", rebuild);
  add('vacuum', 'take out timelines of inactive readers and entries that nobody may see', vacuum);
  addFeedImport(feed, environment);
}
