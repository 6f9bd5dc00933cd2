/**
 * The in-app inbox as a provider: the entry is written under the delivery's id, so that an attempt that is made again
 * changes nothing. Exactly once, because the database takes part.
 */
import type { AttemptOutcome, Provider } from '../provider.js';

/** Writes the entry unless it is there, or its delivery has been erased. */
export type WriteInbox = (entry: {
  readonly id: string;
  readonly user: string;
  readonly kind: string;
  readonly title: string;
  readonly body: string;
  readonly url: string | undefined;
}) => Promise<void>;

export function createInboxProvider({ write }: { readonly write: WriteInbox }): Provider {
  return {
    name: 'inbox',
    channel: 'inbox',
    async attempt({ reference, destination, content, kind }): Promise<AttemptOutcome> {
      try {
        await write({
          id: reference,
          user: destination.address,
          kind,
          title: String(content['title'] ?? ''),
          body: String(content['body'] ?? ''),
          url: typeof content['url'] === 'string' ? content['url'] : undefined,
        });
      } catch {
        // Written or not, the next attempt finds out: nothing is lost or doubled by it.
        return { kind: 'not-accepted', detail: 'the database did not take it' };
      }
      return { kind: 'sent', messageId: reference };
    },
  };
}
