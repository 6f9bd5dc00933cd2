/**
 * Cuts a connection that owes an answer and has said nothing for a given time, and gives up what three connections in a row have been asked
 * and not answered, so that no command waits for ever: the driver asks again as long as a server greets it. Looking at the
 * connections now and then costs nothing per command; the driver's own `socketTimeout`, a timer and a listener for each, is a sixth of what
 * a command alone costs the client. Counts looks instead of time: a process that was held up itself has not listened either.
 */
import type { Redis } from 'ioredis';
import { redisQueueError } from './errors.js';

/** Unanswered looks in a row after which a connection is cut. */
const looksMax = 5;

/** Connections that are asked for the same. */
export const connectionsMax = 3;

interface Look {
  readonly stream: Redis['stream'];
  readonly bytesRead: number;
  readonly unanswered: number;
}

interface Cut {
  readonly stream: Redis['stream'];
  /** The first of the commands that were not answered; the driver sends it again as it is. */
  readonly command: unknown;
  readonly times: number;
}

/** Answers what ends the watch. */
export function watchSilence(connections: () => readonly Redis[], silenceMs: number): () => void {
  const looks = new WeakMap<Redis, Look>();
  const cuts = new WeakMap<Redis, Cut>();
  const cut = (connection: Redis): void => {
    const { commandQueue, stream } = connection;
    const command = commandQueue.peekFront()?.command;
    const last = cuts.get(connection);
    // It takes a while until the driver has another.
    if (last?.stream === stream) return;
    const times = last?.command === command ? last!.times + 1 : 1;
    cuts.set(connection, { stream, command, times });
    const text = `the server has said nothing for ${silenceMs} ms`;
    if (times >= connectionsMax) {
      const error = redisQueueError('redis-unavailable', `${text}, ${times} times in a row`);
      const given = commandQueue.toArray();
      commandQueue.clear();
      for (const item of given) item.command.reject(error);
    }
    stream.destroy(new Error(text));
  };
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
    if (unanswered >= looksMax) cut(connection);
  };
  const timer = setInterval(() => connections().forEach(look), Math.ceil(silenceMs / looksMax));
  timer.unref();
  return () => clearInterval(timer);
}
