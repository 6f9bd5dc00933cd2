/** A queue's configuration as it is stored: JSON for readers, and packed for the functions (lua/context.lua). */
import { configurationDefault, type QueueConfiguration } from '../store.js';

export function packConfiguration(configuration: QueueConfiguration): Buffer {
  const { type, retentionMs, rateLimit } = configuration;
  const key = Buffer.from(type.kind === 'exclusive' ? type.key : '');
  const packed = Buffer.alloc(64);
  packed.writeUInt8(type.kind === 'exclusive' ? 1 : 0, 0);
  packed.writeUInt8(configuration.enqueueBlocked ? 1 : 0, 1);
  packed.writeUInt8(configuration.dequeueBlocked ? 1 : 0, 2);
  packed.writeUInt8(configuration.history === 'off' ? 0 : 1, 3);
  packed.writeUInt32BE(configuration.attemptsMax, 4);
  const doubles = [
    configuration.leaseMs,
    configuration.delayMs,
    retentionMs.completed,
    retentionMs.canceled,
    retentionMs.errored,
    rateLimit?.count ?? 0,
    rateLimit?.perMs ?? 0,
  ];
  for (const [index, value] of doubles.entries()) packed.writeDoubleBE(value, 8 + 8 * index);
  return Buffer.concat([packed, key]);
}

export function parseStoredConfiguration(json: string | null): QueueConfiguration {
  if (json === null) return configurationDefault;
  return { ...configurationDefault, ...(JSON.parse(json) as Partial<QueueConfiguration>) };
}
