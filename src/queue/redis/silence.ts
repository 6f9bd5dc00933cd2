/**
 * Cuts a connection that owes an answer and has said nothing for a given time, so that no command waits for ever. Looking at the
 * connections now and then costs nothing per command; the driver's own `socketTimeout`, a timer and a listener for each, is a sixth of what
 * a command alone costs the client. Counts looks instead of time: a process that was held up itself has not listened either.
 */
import type { Redis } from 'ioredis';

/** Unanswered looks in a row after which a connection is cut. */
const looksMax = 5;

interface Look {
  readonly stream: Redis['stream'];
  readonly bytesRead: number;
  readonly unanswered: number;
}

/** Answers what ends the watch. */
export function watchSilence(connections: () => readonly Redis[], silenceMs: number): () => void {
  const looks = new WeakMap<Redis, Look>();
  const look = (connection: Redis): void => {
    const { stream, commandQueue } = connection;
    // Before the first connect there is none.
    if (!(stream as Look['stream'] | undefined) || commandQueue.length === 0) {
      looks.delete(connection);
      return;
    }
    const { bytesRead } = stream;
    const last = looks.get(connection);
    const isSame = last?.stream === stream && last.bytesRead === bytesRead;
    const unanswered = isSame ? last.unanswered + 1 : 0;
    looks.set(connection, { stream, bytesRead, unanswered });
    if (unanswered >= looksMax) stream.destroy(new Error(`the server has said nothing for ${silenceMs} ms`));
  };
  const timer = setInterval(() => connections().forEach(look), Math.ceil(silenceMs / looksMax));
  timer.unref();
  return () => clearInterval(timer);
}
