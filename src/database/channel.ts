/** Names of notification channels: checked, because LISTEN takes no parameters. */
import { invalidInput } from '../errors.js';

const channelPattern = /^[a-z_][a-z0-9_]{0,62}$/;

/** Throws `invalid-input` unless the name can stand in a LISTEN. */
export function assertChannel(channel: string): void {
  if (channelPattern.test(channel)) return;
  throw invalidInput(
    'channel',
    channel,
    'up to 63 lower-case letters, digits and underscores, not beginning with a digit',
  );
}
