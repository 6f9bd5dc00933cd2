/** Pages of messages of each state. */
import type { MessageState } from '../../../../src/queue/index.js';
import { behindRunning, held, hundred, rest, type Operation } from './operation.js';

const states: MessageState[] = ['invisible', 'pending', 'running', 'completed', 'canceled', 'errored'];
export const lists = states.flatMap((state): Operation[] => {
  const page = { ...rest, state, where: {}, limit: 50 };
  return [
    [
      `list of ${state}`,
      state === 'invisible' ? behindRunning : hundred,
      async (store) => {
        await held(store, 100);
        return () => store.list({ ...page, after: undefined });
      },
    ],
    [
      `list of ${state}, the page after`,
      state === 'invisible' || state === 'running' ? behindRunning : hundred,
      async (store) => {
        const { next: after } = await store.list({ ...page, limit: 1_000, after: undefined });
        return () => store.list({ ...page, after });
      },
    ],
    [
      `list of ${state} with a filter`,
      { rows: 20_100, pages: 30_000 },
      async (store) => () => store.list({ ...page, where: { tenant: 't99' }, after: undefined }),
    ],
  ];
});

export const newestLists = (['completed', 'canceled', 'errored'] as const).flatMap((state): Operation[] => {
  const page = { ...rest, state, where: {}, limit: 50, newestFirst: true };
  return [
    [
      `list of ${state} from the newest on`,
      hundred,
      async (store) => () => store.list({ ...page, after: undefined }),
    ],
    [
      `list of ${state} from the newest on, the page after`,
      hundred,
      async (store) => {
        const { next: after } = await store.list({ ...page, limit: 1_000, after: undefined });
        return () => store.list({ ...page, after });
      },
    ],
  ];
});
