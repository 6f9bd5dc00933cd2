/**
 * No queue at all: where a message would be enqueued, dequeued and completed, a function of the server that writes one field
 * is called, each awaited. What one caller's three round trips cost whatever is done in them.
 */
import { createRequire } from 'node:module';
import { finish, request, Tally } from './tally.js';

const { url, messages, slots, build } = request;
const { Redis } = createRequire(`${build}/package.json`)('ioredis');
const client = new Redis(url);
await client.call(
  'FUNCTION',
  'LOAD',
  'REPLACE',
  `#!lua name=bare
  redis.register_function('bare_write', function(keys, args) return redis.call('HSET', keys[1], args[1], args[2]) end)`,
);
const write = (field, value) => client.call('FCALL', 'bare_write', 1, 'bare', field, value);

const tally = new Tally(messages);
let next = 0;
const startedAt = performance.now();
await Promise.all(
  Array.from({ length: slots }, async (_, slot) => {
    while (next < messages) {
      const index = next++;
      await write(slot, JSON.stringify({ index }));
      await write(slot, 'running');
      tally.handle(index);
      await write(slot, 'completed');
    }
  }),
);
const seconds = (performance.now() - startedAt) / 1_000;
client.disconnect();
finish(tally.answer(seconds));
