/** What the timelines of one node take: keys are in no order, so the first ones of a scan stand for all. */
import type { Redis } from 'ioredis';

/** Of a node: asking for them takes it a few milliseconds. */
const sampledKeys = 500;

export async function sampledBytes(node: Redis, prefix: string): Promise<number> {
  const [, keys] = await node.scan('0', 'COUNT', sampledKeys);
  if (keys.length === 0) return 0;
  const pipeline = node.pipeline();
  for (const key of keys) {
    // What is not a timeline counts as a key of no bytes.
    if (key.startsWith(`${prefix}:{`) && /\}:\d+$/.test(key)) pipeline.memory('USAGE', key, 'SAMPLES', 0);
  }
  pipeline.dbsize();
  const replies = ((await pipeline.exec()) ?? []).map(([error, reply]) => (error ? 0 : Number(reply)));
  const total = replies.pop() ?? 0;
  const sampled = replies.reduce((sum, bytes) => sum + bytes, 0);
  return Math.round((sampled / keys.length) * total);
}
