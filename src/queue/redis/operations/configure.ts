/** configuration and configure: compare and set, so that two changes at once both hold. */
import { queueError } from '../../errors.js';
import type { QueueConfiguration } from '../../store.js';
import { type Context, keysOf, type Place } from '../call.js';
import type { RedisClient } from '../connection.js';
import { packConfiguration, parseStoredConfiguration } from '../configuration.js';

export const readConfiguration = (
  client: RedisClient,
  context: Context,
  queue: string,
): Promise<string | null> => client.hget(`${context.keys.base(queue)}:q`, 'json');

export async function configure(
  client: RedisClient,
  context: Context,
  places: readonly Place[],
  change: Partial<QueueConfiguration>,
): Promise<QueueConfiguration> {
  const { queue } = places[0]!;
  for (;;) {
    const json = await readConfiguration(client, context, queue);
    const configuration = parseStoredConfiguration(json);
    const next = { ...configuration, ...change };
    const typeChanges = JSON.stringify(next.type) !== JSON.stringify(configuration.type);
    const args = [JSON.stringify(next), packConfiguration(next), typeChanges ? '1' : '0'] as const;
    let code = 0;
    for (const place of places) {
      const read =
        place.shard === 0 ? json : await client.hget(`${context.keys.base(queue, place.shard)}:q`, 'json');
      code = Number(await context.caller.call('configure', keysOf(context, place), [read ?? '', ...args]));
      if (code !== 0) break;
    }
    if (code === 0) return next;
    if (code === 2) {
      const text = `queue "${queue}" holds messages: its type and exclusivity key cannot change now`;
      throw queueError('configuration-fixed', text, { field: 'type', ids: { queue } });
    }
  }
}
