/**
 * The demo world at work: accounts post at a steady rate, readers open home three times as often, and now and then
 * somebody deletes a post or changes whom they follow; each second post comes with a notification. All through the HTTP API; never more than a few calls at a time,
 * and a slow server makes the traffic slower instead of longer.
 */
import type { Component } from '../../lifecycle.js';
import type { Log } from '../../log.js';
import type { ApiClient } from '../api-client.js';
import { createNotifyTraffic } from './notify-traffic.js';
import { sentence } from './sentences.js';

export interface TrafficOptions {
  readonly client: ApiClient;
  readonly accounts: readonly string[];
  /** Posts a second; 0 stops all traffic. */
  readonly rate: number;
  /** The kinds of the demo are there. */
  readonly notifies: boolean;
  readonly log: Log;
  /** From 0 to 1; default Math.random. */
  readonly random?: () => number;
}

const readsForAPost = 3;
const notificationsForAPost = 0.5;
const callsMax = 8;
const tickMs = 100;
/** What one tick may catch up after a pause. */
const actionsOfATickMax = 50;

export function createTraffic({
  client,
  accounts,
  rate,
  notifies,
  log,
  random = Math.random,
}: TrafficOptions): Component {
  let timer: NodeJS.Timeout | undefined;
  let owed = 0;
  let lastMs = 0;
  const running = new Set<Promise<void>>();
  const recentPosts: string[] = [];

  // the square makes a tenth of the accounts do a third of the posting, as people do
  const anyAccount = (skew = 1): string => accounts[Math.floor(random() ** skew * accounts.length)]!;
  const path = encodeURIComponent;
  const notifications = notifies ? createNotifyTraffic({ client, random, anyAccount }) : undefined;

  const post = async (): Promise<void> => {
    const { id } = await client.post<{ id: string }>('/v1/posts', {
      author: anyAccount(2),
      text: sentence(random),
    });
    recentPosts.push(id);
    if (recentPosts.length > 200) recentPosts.shift();
  };
  const read = async (): Promise<void> => void (await client.get(`/v1/accounts/${path(anyAccount())}/home`));
  const changeMind = async (): Promise<void> => {
    const [reader, other] = [anyAccount(), anyAccount(2)];
    if (reader === other) return;
    const route = `/v1/accounts/${path(reader)}/following/${path(other)}`;
    if (random() >= 0.7) return void (await client.delete<unknown>(route));
    const { created } = await client.put<{ created?: boolean }>(route);
    if (created === true) await notifications?.followed({ user: other, follower: reader });
  };
  const deletePost = async (): Promise<void> => {
    const id = recentPosts.splice(Math.floor(random() * recentPosts.length), 1)[0];
    if (id !== undefined) await client.delete(`/v1/posts/${id}`);
  };

  const act = (): Promise<void> => {
    const dice = random() * (1 + readsForAPost);
    if (dice > 1) return read();
    if (dice > 0.95) return changeMind();
    if (dice > 0.93) return deletePost();
    if (notifications !== undefined && random() < notificationsForAPost) run(notifications.notify());
    return post();
  };

  const run = (action: Promise<void>): void => {
    const settled = action.catch((error: unknown) =>
      log.warn({ err: error }, 'a call of the demo traffic failed'),
    );
    running.add(settled);
    void settled.finally(() => running.delete(settled));
  };

  const tick = (): void => {
    const nowMs = performance.now();
    owed = Math.min(owed + ((nowMs - lastMs) / 1_000) * rate * (1 + readsForAPost), actionsOfATickMax);
    lastMs = nowMs;
    while (owed >= 1 && running.size < callsMax) {
      owed -= 1;
      run(act());
    }
  };

  return {
    async start() {
      if (timer || rate === 0 || accounts.length < 2) return;
      lastMs = performance.now();
      timer = setInterval(tick, tickMs);
    },
    async stop() {
      clearInterval(timer);
      timer = undefined;
      await Promise.all(running);
    },
  };
}
