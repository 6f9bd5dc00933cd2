/**
 * Writes a post as the reader. Each draft has a key of its own, so that pressing the button twice, or again after an
 * answer that got lost, makes one post.
 */
import { useRef, useState } from 'preact/hooks';
import { announce } from '../announce.js';
import { asProblem, call, type ApiProblem } from '../api.js';
import type { Post } from '../api-types.js';
import { ProblemNotice } from '../notice.js';

export interface ComposerProps {
  readonly author: string;
  readonly onPublished: (post: Post) => Promise<void>;
}

/** The limit of the API. */
const textCharactersMax = 10_000;

export function Composer({ author, onPublished }: ComposerProps) {
  const [text, setText] = useState('');
  const [isSending, setSending] = useState(false);
  const [problem, setProblem] = useState<ApiProblem | undefined>(undefined);
  const key = useRef(newKey());

  const send = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (isSending || text.trim() === '') return;
    setSending(true);
    setProblem(undefined);
    try {
      const post = await call<Post>('/v1/posts', {
        method: 'POST',
        body: { author, text, key: key.current },
      });
      key.current = newKey();
      setText('');
      announce('Posted; it stands at the top of this home');
      await onPublished(post);
    } catch (error) {
      setProblem(asProblem(error));
    }
    setSending(false);
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void send(event);
  };
  return (
    <form class="composer" onSubmit={(event) => void send(event)} aria-label={`Post as ${author}`}>
      <label>
        <span>Post as {author}</span>
        <textarea
          rows={2}
          value={text}
          maxLength={textCharactersMax}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={onKey}
        />
      </label>
      <div class="composer-foot">
        <span class="muted wide-only">Ctrl + Enter posts</span>
        <button type="submit" class="primary" aria-disabled={isSending || text.trim() === ''}>
          {isSending ? 'Posting…' : 'Post'}
        </button>
      </div>
      {problem !== undefined && <ProblemNotice problem={problem} />}
    </form>
  );
}

/** Not randomUUID: browsers offer that on secure origins only, and a server may be reached by plain HTTP. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return `dashboard-${[...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
