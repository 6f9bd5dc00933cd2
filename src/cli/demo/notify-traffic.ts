/** What the demo sends: codes, orders, promotions, and one event for every new follower, all through the HTTP API. */
import type { ApiClient } from '../api-client.js';

export interface NotifyTraffic {
  /** One notification of a kind drawn by chance. */
  notify(): Promise<void>;
  /** Somebody has a new follower. */
  followed(event: { readonly user: string; readonly follower: string }): Promise<void>;
}

const wares = ['warm boots', 'a field guide to rivers', 'seeds for the balcony', 'a better lamp'];

export function createNotifyTraffic(input: {
  readonly client: ApiClient;
  readonly random: () => number;
  readonly anyAccount: () => string;
}): NotifyTraffic {
  const { client, random, anyAccount } = input;
  const newKey = (): string => `${Date.now().toString(36)}-${Math.floor(random() * 1e9).toString(36)}`;
  const send = (kind: string, body: object): Promise<unknown> =>
    client.post('/v1/notifications', { kind, key: newKey(), ...body });
  const digits = (count: number): string => String(Math.floor(random() * 10 ** count)).padStart(count, '0');
  // numbers and addresses that are set aside for examples
  const phone = () => [{ channel: 'sms', address: `+1555010${digits(4)}` }];
  const email = (user: string) => ({
    channel: 'email',
    address: `user-${user.replaceAll(/[^\w-]/g, '-').slice(0, 40)}@example.com`,
  });

  return {
    async notify() {
      const user = anyAccount();
      const dice = random();
      if (dice < 0.5) await send('otp', { user, data: { code: digits(6) }, to: phone() });
      else if (dice < 0.75) {
        const to = [email(user), { channel: 'inbox', address: user }];
        await send('order', { user, data: { number: digits(5) }, to });
      } else {
        const what = wares[Math.floor(random() * wares.length)];
        await send('promo', { user, data: { what }, to: [email(user)] });
      }
    },
    async followed({ user, follower }) {
      await send('follow', { user, data: { follower }, digestKey: null });
    },
  };
}
