/** The flags from which commands make a message. */
import type { Command } from 'commander';
import { json, number, pairs } from '../arguments.js';
import type { Flags } from '../config.js';

/** A message without its id, from the flags of `withMessage`. */
export function messageOf(flags: Flags): Readonly<Record<string, unknown>> {
  const { priority, metadata, delayMs, attemptsMax, leaseMs, uniqueWhileLive, payload } = flags;
  return {
    priority,
    metadata,
    delayMs,
    attemptsMax,
    leaseMs,
    uniqueWhileLive,
    payload: json('--payload', String(payload)),
  };
}

/** The flags of a message without its id. */
export const withMessage = (command: Command): Command =>
  command
    .requiredOption('--payload <json>', 'any JSON')
    .option('--priority <number>', 'lower first; default: now in unix milliseconds', number('--priority'))
    .option('--metadata <key=value>', 'may be given several times', pairs('--metadata'))
    .option('--delay-ms <number>', 'not before', number('--delay-ms'))
    .option('--attempts-max <number>', 'dequeues before it is errored', number('--attempts-max'))
    .option('--lease-ms <number>', 'length of a lease', number('--lease-ms'))
    .option('--unique-while-live', 'the id is free again as soon as the message has ended');
