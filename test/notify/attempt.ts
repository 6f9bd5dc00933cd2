/** One attempt of an adapter, as the engine would make it: for tests of what each provider says about each answer. */
import { callWithin } from '../../src/notify/deliver.js';
import type {
  AttemptOutcome,
  AttemptRequest,
  Content,
  Destination,
  Provider,
} from '../../src/notify/index.js';

export interface Attempted {
  readonly outcome: AttemptOutcome;
  readonly tookMs: number;
}

export async function attempt(
  provider: Provider,
  request: Partial<AttemptRequest> & { destination: Destination; content: Content },
  { limitMs = 4_000 } = {},
): Promise<Attempted> {
  const startedAtMs = performance.now();
  const outcome = await callWithin({
    limitMs,
    stopped: new AbortController().signal,
    call: (signal) =>
      provider.attempt(
        {
          reference: 'd-1',
          attempt: 1,
          kind: 'test',
          createdAt: 1_790_000_000_000,
          timeLeftMs: 60_000,
          ...request,
        },
        { signal },
      ),
  });
  return { outcome, tookMs: performance.now() - startedAtMs };
}
