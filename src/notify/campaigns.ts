/**
 * Campaigns: one kind to a stream of recipients. Guarantees: each recipient has one notification however often the
 * stream is begun again; memory is bounded by the batch; a pause holds what waits as well as the stream; progress never
 * goes back.
 */
import { invalidInput } from '../errors.js';
import { parseLine } from './destination.js';
import type { Door } from './door.js';
import { notifyError } from './errors.js';
import type { Kinds } from './kinds-in-force.js';
import type { SendRequest } from './notification.js';
import type { NotifySettings } from './options.js';
import {
  campaignStates,
  type CampaignProgress,
  type CampaignState,
  type CampaignSummary,
} from './people-store.js';

/** A recipient: what `send` takes, without the key, which is the campaign's. */
export type Recipient = Omit<SendRequest, 'key'>;

export interface CampaignRequest {
  readonly id: string;
  readonly kind: string;
  readonly recipients: Iterable<Recipient> | AsyncIterable<Recipient>;
  /** Recipients of one transaction. Default 500, at most 1,000. */
  readonly batchSize?: number;
  readonly onProgress?: (taken: number) => void;
  /** Ends the streaming; the campaign can be begun again. */
  readonly signal?: AbortSignal;
}

export interface Campaigns {
  /** Streams the recipients in. After a crash, call it again with the same stream: who is known is passed over. */
  run(request: CampaignRequest): Promise<CampaignProgress>;
  pause(id: string): Promise<CampaignProgress>;
  resume(id: string): Promise<CampaignProgress>;
  /** Ends what waits; what is being sent keeps its outcome. */
  cancel(id: string): Promise<CampaignProgress>;
  progress(id: string): Promise<CampaignProgress>;
  /** Newest first. `before`: the last id of the page before. Default limit 50, at most 200. */
  list(filter?: {
    readonly state?: CampaignState | undefined;
    readonly before?: string | undefined;
    readonly limit?: number | undefined;
  }): Promise<CampaignSummary[]>;
}

const batchDefault = 500;
const batchMax = 1_000;
const listDefault = 50;
const listMax = 200;
/** How often a paused stream asks whether it may go on. */
const pausedMs = 500;

export function createCampaigns(
  settings: NotifySettings,
  { kinds, door }: { kinds: Kinds; door: Door },
): Campaigns {
  const { store, database, clock, timings } = settings;
  const now = (): number | undefined => clock.storeNow();

  const progress = async (id: string): Promise<CampaignProgress> => {
    const found = await store.campaign(database, id);
    if (found === undefined)
      throw notifyError('campaign-unknown', `no campaign "${id}" is known`, { ids: { campaign: id } });
    return found;
  };

  const move = async (
    id: string,
    from: readonly CampaignState[],
    to: CampaignState,
  ): Promise<CampaignProgress> => {
    await store.moveCampaign(database, { id, from, to, now: now() });
    return progress(id);
  };

  /** One batch in one transaction. False: the campaign is paused, and nothing was taken. */
  const take = async (id: string, kind: string, batch: readonly Recipient[]): Promise<boolean> =>
    database.transaction(async (transaction) => {
      const requests = batch.map((recipient) => ({ ...recipient, key: `campaign:${id}` }));
      // The row of the campaign first: a pause that has committed is obeyed by every batch after it.
      const state = await store.takeRecipients(transaction, { id, count: 0, now: now() });
      if (state === 'canceled') throw notifyError('campaign-ended', `the campaign "${id}" has been canceled`);
      if (state === 'paused') return false;
      const outcomes = await door.send(kind, requests, { transaction, origin: 'campaign', campaign: id });
      const count = outcomes.filter((outcome) => outcome.kind === 'accepted').length;
      await store.takeRecipients(transaction, { id, count, now: now() });
      return true;
    });

  const takeWhenRunning = async (request: CampaignRequest, batch: readonly Recipient[]): Promise<void> => {
    while (!(await take(request.id, request.kind, batch))) {
      request.signal?.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, pausedMs));
    }
    request.onProgress?.(batch.length);
  };

  return {
    async run(request) {
      const { id, kind, recipients, signal } = request;
      const size = Math.min(batchMax, Math.max(1, request.batchSize ?? batchDefault));
      kinds.definition(kind);
      await store.putCampaign(database, { id: parseLine('id', id, 100), kind, now: now() });
      let batch: Recipient[] = [];
      for await (const recipient of recipients) {
        signal?.throwIfAborted();
        batch.push(recipient);
        if (batch.length < size) continue;
        await takeWhenRunning(request, batch);
        batch = [];
      }
      if (batch.length > 0) await takeWhenRunning(request, batch);
      return move(id, ['running'], 'streamed');
    },

    pause: (id) => move(id, ['running', 'streamed'], 'paused'),
    // Whether the stream had ended is found out by running it again; until then it counts as running.
    resume: (id) => move(id, ['paused'], 'running'),

    async cancel(id) {
      await store.moveCampaign(database, {
        id,
        from: ['running', 'paused', 'streamed'],
        to: 'canceled',
        now: now(),
      });
      const limit = timings.sweepRowsMax;
      while ((await store.suppressCampaign(database, { id, limit, now: now() })) > 0);
      return progress(id);
    },

    progress,

    async list({ state, before, limit = listDefault } = {}) {
      if (state !== undefined && !campaignStates.includes(state))
        throw invalidInput('state', state, `one of ${campaignStates.join(', ')}`);
      if (!Number.isSafeInteger(limit) || limit < 1 || limit > listMax)
        throw invalidInput('limit', limit, `a whole number from 1 to ${listMax}`);
      return store.campaigns(database, { state, before, limit });
    },
  };
}
