/** The pages of notifications and prices in a real browser, on the demo's own traffic. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { call, runHeadgate, type HeadgateProcess } from '../cli/headgate-process.js';
import { until } from '../../src/testing/until.js';
import {
  accessibilityFaults,
  browserPath,
  launchBrowser,
  openPage,
  sidewaysOverflow,
  type WatchedPage,
} from './browser.js';

const withinMs = 30_000;
const testMs = 180_000;
const user = 'ann/1 & "co"';

let product: HeadgateProcess;
let browser: Browser;
let folder: string;
let address: string;
let id: string;
let waiting: string;
let watched: WatchedPage[] = [];

async function open(hash: string, options: Parameters<typeof openPage>[2] = {}): Promise<Page> {
  const opened = await openPage(browser, address, options);
  opened.page.setDefaultTimeout(withinMs);
  watched.push(opened);
  await opened.page.goto(`${address}/${hash}`);
  await opened.page.locator('h1').waitFor();
  return opened.page;
}
const settled = (page: Page) =>
  until(async () => (await page.locator('.notice-loading').count()) === 0, {
    what: 'the content',
    boundMs: withinMs,
  });

const send = async (body: object): Promise<string> =>
  (await call(address, 'POST', '/v1/notifications', { kind: 'order', user, data: { number: 7 }, ...body }))
    .body.id;

describe.skipIf(browserPath === undefined)(
  'the pages of notifications (need Chromium)',
  { timeout: testMs },
  () => {
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'headgate-notify-pages-'));
      product = runHeadgate(['start', '--port', '0', '--data', folder, '--accounts', '100', '--rate', '20']);
      address = await product.ready();
      browser = await launchBrowser();
      const to = [{ channel: 'inbox', address: user }];
      id = await send({ key: 'order-7', to });
      waiting = await send({ key: 'order-8', to, sendAt: Date.now() + 3_600_000 });
    }, testMs);
    afterAll(async () => {
      await browser?.close();
      await product?.kill('SIGKILL');
      if (folder !== undefined) await rm(folder, { recursive: true, force: true });
    });
    afterEach(async () => {
      const faults = watched.flatMap((opened) => opened.faults);
      await Promise.all(watched.map(({ page }) => page.context().close()));
      watched = [];
      if (faults.length > 0) throw new Error(`the page has faults:\n${faults.join('\n')}`);
    });

    it('show a ledger that adds up, every kind, and every provider with its breaker', async () => {
      const page = await open('#/notify');
      const sent = page.locator('.figure', { hasText: 'the provider said so' }).locator('.figure-value');
      await until(async () => Number(await sent.textContent()) > 0, {
        what: 'something sent',
        boundMs: withinMs,
      });
      await page.getByText('add up to what was accepted').waitFor();
      const kinds = page.getByRole('region', { name: /^Kinds/ });
      for (const kind of ['otp', 'order', 'follow', 'promo'])
        expect(await kinds.getByRole('link', { name: kind, exact: true }).count()).toBe(1);
      const providers = page.getByRole('region', { name: /^Providers/ });
      expect(await providers.locator('tbody tr').count()).toBe(3);
      await page.locator('.chart canvas').waitFor();
    });

    it('lead from a kind over its deliveries to the story of one, with every step', async () => {
      const page = await open('#/notify');
      await page.getByLabel('User id').fill(user);
      await page.getByRole('button', { name: 'Show deliveries' }).click();
      await page
        .getByRole('link', { name: /Story of order/ })
        .first()
        .waitFor();
      await page.goto(`${address}/#/notify/notifications/${id}`);
      const history = page.getByRole('region', {
        name: 'History of the delivery by inbox, scrolls sideways',
      });
      await until(
        async () => {
          await page.getByRole('button', { name: 'Refresh' }).click();
          return (await history.getByRole('rowheader').allTextContents()).join() === 'accepted,sending,sent';
        },
        { what: 'its story', boundMs: withinMs },
      );
      expect(await page.locator('.delivery-state').textContent()).toBe('sent');
    });

    it('cancel what waits, after asking once more', async () => {
      const page = await open(`#/notify/notifications/${waiting}`);
      await page.getByRole('button', { name: `Cancel notification ${waiting}` }).click();
      await page.getByRole('button', { name: 'Cancel for good?' }).click();
      await page.locator('.delivery-state', { hasText: 'suppressed' }).waitFor();
      await page.goto(`${address}/#/notify/deliveries?state=suppressed&kind=order`);
      await page.getByText('canceled').first().waitFor();
    });

    it('list campaigns, and lead to the progress of one that is paused, resumed and canceled', async () => {
      const recipients = [1, 2, 3].map((index) => ({
        user: `c${index}`,
        data: { what: 'boots', number: index },
        to: [{ channel: 'inbox', address: `c${index}` }],
        sendAt: Date.now() + 3_600_000,
      }));
      for (const name of ['spring', 'summer & autumn'])
        await call(address, 'POST', '/v1/campaigns', { id: name, kind: 'order', recipients });
      const page = await open('#/notify');
      await page.getByRole('link', { name: 'all campaigns' }).click();
      const list = page.getByRole('region', { name: /^Campaigns/ });
      await list.waitFor();
      expect(await list.getByRole('rowheader').allTextContents()).toEqual(['summer & autumn', 'spring']);
      await list.getByRole('link', { name: 'summer & autumn' }).click();
      await page.getByRole('button', { name: 'Pause campaign summer & autumn' }).click();
      await page.getByRole('button', { name: 'Resume campaign summer & autumn' }).click();
      await page.getByRole('button', { name: 'Cancel campaign summer & autumn' }).click();
      await page.getByRole('button', { name: 'Cancel for good?' }).click();
      await page.locator('dd', { hasText: 'canceled' }).waitFor();
      await page.goto(`${address}/#/notify/campaigns?state=canceled`);
      await page.reload();
      await list.waitFor();
      expect(await list.getByRole('rowheader').allTextContents()).toEqual(['summer & autumn']);
    });

    it('say what is wrong and what is empty', async () => {
      const page = await open('#/notify/notifications/nothing');
      await page.getByRole('alert').getByText('notification-unknown').waitFor();
      await page.goto(`${address}/#/notify/deliveries?user=nobody`);
      await page.getByText('No delivery.', { exact: true }).waitFor();
    });

    it('show prices that are counted', async () => {
      const page = await open('#/prices');
      const amplification = page
        .getByRole('row', { name: /write amplification/ })
        .locator('td')
        .nth(1);
      await until(async () => /\d/.test((await amplification.textContent()) ?? ''), {
        what: 'a price',
        boundMs: withinMs,
      });
      const calls = page.getByRole('row', { name: /calls whose outcome nobody knows/ });
      expect(await calls.textContent()).toMatch(/of [\d,]+ calls/);
      // said by the housekeeping of the workers, which begins after the start
      const bytes = page.locator('dl.facts div', { hasText: 'Bytes of timelines' }).locator('dd');
      await until(async () => /^[\d.,]+ [kMGT]?B$/.test((await bytes.textContent()) ?? ''), {
        what: 'the bytes of timelines',
        boundMs: withinMs,
      });
    });

    const everyPage = () => [
      '#/notify',
      '#/notify/deliveries',
      '#/notify/deliveries?state=expired&kind=otp',
      `#/notify/notifications/${id}`,
      '#/notify/notifications/nothing',
      '#/notify/campaigns',
      '#/notify/campaigns?state=paused',
      '#/notify/campaigns/spring',
      '#/prices',
    ];
    const visit = async (page: Page, hash: string): Promise<void> => {
      await page.goto(`${address}/${hash}`);
      await page.reload();
      await page.locator('h1').waitFor();
      await settled(page);
    };

    it('have landmarks, one heading of the first level, and a name on every control', async () => {
      const faults: string[] = [];
      const page = await open('', { colorScheme: 'dark' });
      for (const hash of everyPage()) {
        await visit(page, hash);
        faults.push(...(await accessibilityFaults(page)).map((fault) => `${hash}: ${fault}`));
      }
      expect(faults).toEqual([]);
    });

    it('do not scroll sideways at the width of a phone', async () => {
      const wide: string[] = [];
      const page = await open('', { viewport: { width: 360, height: 740 } });
      for (const hash of everyPage()) {
        await visit(page, hash);
        const overflow = await sidewaysOverflow(page);
        if (overflow > 0) wide.push(`${hash}: ${overflow} pixels`);
      }
      expect(wide).toEqual([]);
    });
  },
);

describe.skipIf(browserPath === undefined)('signing in (needs Chromium)', { timeout: testMs }, () => {
  const key = 'the-key-of-an-administrator';
  let guarded: HeadgateProcess;
  let guardedFolder: string;
  beforeAll(async () => {
    guardedFolder = await mkdtemp(join(tmpdir(), 'headgate-sign-in-'));
    guarded = runHeadgate(['serve', '--port', '0', '--data', guardedFolder], {
      HEADGATE_API_KEYS: `admin:${key}`,
    });
    address = await guarded.ready();
    browser = await launchBrowser();
  }, testMs);
  afterAll(async () => {
    await browser?.close();
    await guarded?.kill('SIGKILL');
    if (guardedFolder !== undefined) await rm(guardedFolder, { recursive: true, force: true });
  });

  it('takes a key, shows and changes with it, keeps it from scripts, and ends', async () => {
    const page = await open('#/feed');
    await page.getByRole('heading', { name: 'Sign in', level: 1 }).waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByLabel('API key').fill('not-the-right-key-at-all');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').getByText('unauthorized').waitFor();
    await page.getByLabel('API key').fill(key);
    await page.getByRole('button', { name: 'Sign in' }).press('Enter');
    await page.getByRole('heading', { name: 'Feed', level: 1 }).waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    expect(await page.evaluate('document.cookie + JSON.stringify({ ...localStorage })')).toBe('{}');
    const made = await page.evaluate(
      "fetch('/v1/accounts/of-the-page', { method: 'PUT' }).then((answer) => answer.status)",
    );
    expect(made).toBe(201);
    await page.reload();
    await page.getByRole('heading', { name: 'Feed', level: 1 }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in', level: 1 }).waitFor();
    expect(await page.evaluate("fetch('/v1/queues').then((answer) => answer.status)")).toBe(401);
  });
});
