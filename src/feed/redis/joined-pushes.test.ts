/** When a push that was joined with others is told, with every call answered by hand. */
import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import type { Call, ScriptCaller } from './caller.js';
import { JoinedPushes, type PushPart } from './joined-pushes.js';

interface Sent {
  readonly calls: readonly Call[];
  answer(): void;
  fail(): void;
}

const bounds = { entriesMax: 800, slack: 64 };
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** What the script answers when every timeline took what it was sent: keys done, then written and late of each group. */
function allWritten({ keys, args }: Call): number[] {
  const reply = [keys.length];
  // Each group has one post here: the number of its keys, the number of its posts, the post.
  for (let at = 3; at < args.length; at += 3) reply.push(Number(args[at]), 0);
  return reply;
}

function opened() {
  const sent: Sent[] = [];
  const callAll: ScriptCaller['callAll'] = (calls) =>
    new Promise((resolve, reject) => {
      sent.push({
        calls,
        answer: () => resolve(calls.map((call) => ({ reply: allWritten(call), server: 'a' }))),
        fail: () => reject(new Error('the connection broke')),
      });
    });
  const pushes = new JoinedPushes({ callAll } as ScriptCaller);
  const node = {} as Redis;
  const push = (readers: readonly string[]) => {
    const told: { outcome?: unknown } = {};
    const part: PushPart = { post: '1700000000000000000', slot: 1, prefix: 't:', readers };
    pushes.push(node, [part], bounds).then(
      (pushed) => (told.outcome = pushed.written),
      (error: unknown) => (told.outcome = error),
    );
    return told;
  };
  return { sent, push };
}

const numbered = (from: number, count: number) =>
  Array.from({ length: count }, (_, index) => String(from + index));

test('a push is told when the last of its calls is answered, and then all that was written', async () => {
  const { sent, push } = opened();
  const told = push(numbered(0, 2_500));
  await turn();
  expect(sent.map(({ calls }) => calls[0]!.keys.length)).toEqual([1_000, 1_000, 500]);
  sent[2]!.answer();
  sent[0]!.answer();
  await turn();
  expect(told.outcome).toBeUndefined();
  sent[1]!.answer();
  await turn();
  expect(told.outcome).toBe(2_500);
});

test('a call that failed fails the pushes it carried, whatever else is answered, and no others', async () => {
  const { sent, push } = opened();
  const [first, second] = [push(numbered(0, 1_500)), push(numbered(5_000, 1_000))];
  await turn();
  expect(sent).toHaveLength(3);
  sent[0]!.fail();
  sent[1]!.answer();
  await turn();
  sent[2]!.answer();
  await turn();
  expect(first.outcome).toBeInstanceOf(Error);
  expect(second.outcome).toBe(1_000);
});

test('a push for nobody is told at once', async () => {
  const { sent, push } = opened();
  const told = push([]);
  await turn();
  await turn();
  expect(sent).toEqual([]);
  expect(told.outcome).toBe(0);
});
