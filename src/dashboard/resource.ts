/** Reads something from the API for a component: one request at a time, and a late answer to an old question is dropped. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { asProblem, type ApiProblem } from './api.js';

export interface Resource<Value> {
  /** The last answer to the present question; stays while it is asked again. */
  readonly value: Value | undefined;
  readonly problem: ApiProblem | undefined;
  readonly loading: boolean;
  /** Asks again; resolves when the answer is there, whatever it is. */
  readonly reload: () => Promise<void>;
}

interface Held<Value> {
  readonly key: string;
  readonly value: Value | undefined;
  readonly problem: ApiProblem | undefined;
  readonly loading: boolean;
}

/** `key` names the question: while it stays, the answer stays; when it changes, the old answer is gone at once. */
export function useResource<Value>(
  key: string,
  load: (signal: AbortSignal) => Promise<Value>,
): Resource<Value> {
  const [held, setHeld] = useState<Held<Value>>({ key, value: undefined, problem: undefined, loading: true });
  const running = useRef<AbortController | undefined>(undefined);
  const latestLoad = useRef(load);
  latestLoad.current = load;

  const reload = useCallback(async (): Promise<void> => {
    running.current?.abort();
    const request = new AbortController();
    running.current = request;
    setHeld((before) => ({
      key,
      value: before.key === key ? before.value : undefined,
      problem: undefined,
      loading: true,
    }));
    try {
      const value = await latestLoad.current(request.signal);
      if (!request.signal.aborted) setHeld({ key, value, problem: undefined, loading: false });
    } catch (error) {
      if (request.signal.aborted) return;
      const problem = asProblem(error);
      setHeld((before) => ({ key, value: before.value, problem, loading: false }));
    }
  }, [key]);

  useEffect(() => {
    void reload();
    return () => running.current?.abort();
  }, [reload]);

  const current = held.key === key ? held : { value: undefined, problem: undefined, loading: true };
  return { value: current.value, problem: current.problem, loading: current.loading, reload };
}

/** Runs `action` every `everyMs` while the component and the page are in sight. */
export function useRepeated(action: () => void, everyMs: number): void {
  const latest = useRef(action);
  latest.current = action;
  useEffect(() => {
    const timer = window.setInterval(() => {
      if (!document.hidden) latest.current();
    }, everyMs);
    return () => window.clearInterval(timer);
  }, [everyMs]);
}
