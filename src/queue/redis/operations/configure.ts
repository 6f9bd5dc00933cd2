/** configuration and configure: compare and set, so that two changes at once both hold. */
import { queueError } from '../../errors.js';
import type { QueueConfiguration } from '../../store.js';
import { type Context, keysOf, type Place } from '../call.js';
import type { RedisClient } from '../connection.js';
import { packConfiguration, parseStoredConfiguration } from '../configuration.js';
import { depth } from './depth.js';

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
    // One place at a time, the first last: it is the one that is read. All are looked at before any is changed.
    if (typeChanges && (await holdsMessages(context, places))) throw configurationFixed(queue);
    let code = 0;
    for (const place of places.toReversed()) {
      const read =
        place.shard === 0 ? json : await client.hget(`${context.keys.base(queue, place.shard)}:q`, 'json');
      code = Number(await context.caller.call('configure', keysOf(context, place), [read ?? '', ...args]));
      if (code !== 0) break;
    }
    if (code === 0) return next;
    if (code === 2) throw configurationFixed(queue);
  }
}

/** More places than one cannot be looked at in one step; of one the function itself makes sure. */
async function holdsMessages(context: Context, places: readonly Place[]): Promise<boolean> {
  if (places.length === 1) return false;
  const request = { where: {}, now: undefined };
  const depths = await Promise.all(places.map((place) => depth(context, place, request)));
  return depths.some(({ invisible, pending, running }) => invisible + pending + running > 0);
}

const configurationFixed = (queue: string) =>
  queueError(
    'configuration-fixed',
    `queue "${queue}" holds messages: its type and exclusivity key cannot change now`,
    { field: 'type', ids: { queue } },
  );
