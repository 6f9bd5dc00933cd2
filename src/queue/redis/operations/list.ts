/** list: one page of a state in the order in which it goes on. */
import type { Message } from '../../message.js';
import type { Context, Place, Request } from '../call.js';
import { decodeCursor, encodeCursor, listed } from './read.js';

export async function listPage(
  context: Context,
  place: Place,
  request: Request<'list'>,
): Promise<{ messages: Message[]; next: string | undefined }> {
  const { after, limit } = request;
  const messages: Message[] = [];
  let cursor: string | undefined;
  // One more than the page tells whether there is another.
  for await (const found of listed(
    context,
    place,
    request,
    limit + 1,
    after === undefined ? undefined : decodeCursor(after),
  )) {
    if (messages.length === limit) return { messages, next: cursor };
    messages.push(found.message);
    if (messages.length === limit) cursor = encodeCursor(found.cursor);
  }
  return { messages, next: undefined };
}
