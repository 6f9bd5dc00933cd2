/**
 * The sandbox: everything but the last step. Takes any message of its channel, sends nothing, and says sent. What it took
 * can be looked at by tests and demos; the log names the delivery and never its content.
 */
import { silentLog, type Log } from '../../log.js';
import type { AttemptRequest, Provider } from '../provider.js';
import type { Channel, PushPlatform } from '../notification.js';

export interface SandboxOptions {
  /** Default: sandbox-<channel>. */
  readonly name?: string;
  readonly platform?: PushPlatform;
  readonly log?: Log;
  /** Is given every message; for a page that shows what would have been sent. */
  readonly onMessage?: (request: AttemptRequest) => void;
}

export function createSandboxProvider(channel: Channel, options: SandboxOptions = {}): Provider {
  const { name = `sandbox-${channel}`, platform, log = silentLog, onMessage } = options;
  return {
    name,
    channel,
    platform,
    async attempt(request) {
      log.info(
        { provider: name, delivery: request.reference, kind: request.kind },
        'taken by the sandbox, not sent',
      );
      onMessage?.(request);
      return {
        kind: 'sent',
        messageId: `${name}-${request.reference}-${request.attempt}`,
        detail: 'sandbox',
      };
    },
  };
}
