/** What the feed counts and measures; lanes are `small` and `big`, operations are method names. */
import type { MetricTable } from '../metrics.js';

const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300];

export const feedMetrics = {
  headgate_feed_posts_total: {
    type: 'counter',
    help: 'Posts published, by the mode of their author.',
    labels: ['mode'],
  },
  headgate_feed_timeline_writes_total: {
    type: 'counter',
    help: 'Entries written into timelines, by cause (fan-out, backfill, rebuild); divided by posts: write amplification.',
    labels: ['cause'],
  },
  headgate_feed_fan_out_lag_seconds: {
    type: 'gauge',
    help: 'Age of the oldest post whose fan-out has not ended, by lane.',
    labels: ['lane'],
  },
  headgate_feed_fan_out_seconds: {
    type: 'histogram',
    help: 'From publish to the entry of the last follower, by lane.',
    labels: ['lane'],
    buckets: seconds,
  },
  headgate_feed_fan_outs_failed_total: {
    type: 'counter',
    help: 'Fan-outs that ended other than completed; their authors are merged at read from then on.',
    labels: ['lane'],
  },
  headgate_feed_home_seconds: {
    type: 'histogram',
    help: 'Duration of a home read, by where the timeline was.',
    labels: ['timeline'],
    buckets: seconds,
  },
  headgate_feed_home_reads_total: {
    type: 'counter',
    help: 'Home reads, by whether every source could be asked.',
    labels: ['complete'],
  },
  headgate_feed_home_pulled_authors_total: {
    type: 'counter',
    help: 'Authors merged at read, over all home reads; divided by reads: sources a read.',
    labels: [],
  },
  headgate_feed_home_candidates_total: {
    type: 'counter',
    help: 'Candidates looked at, over all home reads; divided by reads and items: over-fetch.',
    labels: [],
  },
  headgate_feed_rebuilds_total: {
    type: 'counter',
    help: 'Timelines built, by outcome.',
    labels: ['outcome'],
  },
  headgate_feed_mode_switches_total: {
    type: 'counter',
    help: 'Authors whose mode changed, by the new mode.',
    labels: ['mode'],
  },
  headgate_feed_trimmed_entries_total: {
    type: 'counter',
    help: 'Entries trimmed off the ends of timelines.',
    labels: [],
  },
  headgate_feed_timeline_bytes: {
    type: 'gauge',
    help: 'Bytes that timelines take, by where they are kept: the table with its index, or an estimate from 500 lists a server.',
    labels: ['store'],
  },
  headgate_feed_live_streams: { type: 'gauge', help: 'Open live streams of this process.', labels: [] },
} as const satisfies MetricTable;

export type FeedMetricName = keyof typeof feedMetrics;
