/** Asks for an API key where the server wants one. */
import { useState } from 'preact/hooks';
import { announce } from './announce.js';
import { asProblem, type ApiProblem } from './api.js';
import { ProblemNotice } from './notice.js';
import { signIn } from './session.js';

export function SignInPage() {
  const [key, setKey] = useState('');
  const [problem, setProblem] = useState<ApiProblem | undefined>(undefined);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setProblem(undefined);
    try {
      await signIn(key.trim());
      announce('Signed in');
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  return (
    <>
      <h1 tabIndex={-1}>Sign in</h1>
      <p class="prose">
        This server wants an API key. It is sent once and not kept by this page; you stay signed in for twelve
        hours, or until you sign out.
      </p>
      <form class="inline-form" onSubmit={(event) => void submit(event)} aria-label="Sign in">
        <label>
          <span>API key</span>
          <input
            type="password"
            value={key}
            required
            autocomplete="current-password"
            onInput={(event) => setKey(event.currentTarget.value)}
          />
        </label>
        <button type="submit">Sign in</button>
        {problem !== undefined && <ProblemNotice problem={problem} />}
      </form>
    </>
  );
}
