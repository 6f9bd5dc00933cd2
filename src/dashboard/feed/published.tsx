/** How far a post that was written on this page has come: whether it has reached every follower, and after how long. */
import { useRef, useState } from 'preact/hooks';
import { apiPath, call } from '../api.js';
import type { Post } from '../api-types.js';
import { formatSeconds } from '../format.js';
import { useRepeated } from '../resource.js';

const askEveryMs = 500;

export function Published({ post }: { readonly post: Post }) {
  const [reachedAfter, setReachedAfter] = useState<number | undefined>(post.fanOutDone ? 0 : undefined);
  const isAsking = useRef(false);
  const started = useRef(performance.now());

  const ask = async (): Promise<void> => {
    isAsking.current = true;
    const isDone = await askFanOut(post.id);
    isAsking.current = false;
    if (isDone) setReachedAfter((performance.now() - started.current) / 1_000);
  };
  useRepeated(() => {
    if (post.mode === 'pull' || reachedAfter !== undefined || isAsking.current) return;
    void ask();
  }, askEveryMs);

  return (
    <p class="published" role="status">
      <span
        class={`state state-${reachedAfter === undefined && post.mode === 'push' ? 'connecting' : 'live'}`}
      >
        {textOf(post, reachedAfter)}
      </span>{' '}
      <code class="muted">{post.id}</code>
    </p>
  );
}

async function askFanOut(id: string): Promise<boolean> {
  try {
    return (await call<Post>(apiPath('posts', id))).fanOutDone;
  } catch {
    // Deleted meanwhile, or the server is away: the header tells the latter, and the next round asks again.
    return false;
  }
}

function textOf(post: Post, reachedAfter: number | undefined): string {
  if (post.mode === 'pull') return 'Posted. It is pulled: each follower’s next read merges it.';
  if (reachedAfter === undefined) return 'Posted. Being written into followers’ timelines…';
  return reachedAfter === 0
    ? 'Posted, and in every follower’s timeline.'
    : `Posted. In every follower’s timeline within ${formatSeconds(Math.max(reachedAfter, 0.1))}.`;
}
