/** The dashboard in a real browser against the real product: what a person sees, presses and is told. */
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

/** Generous: beside other tests a page may wait long for its share of the machine. */
const withinMs = 30_000;
const testMs = 180_000;
/** Characters that mean something in a path, a query or a fragment. */
const author = 'author/ü?#& 100 %';
const follower = 'follower "of" it';
const queue = 'letters & parcels';

let product: HeadgateProcess;
let browser: Browser;
let folder: string;
let address: string;
let watched: WatchedPage[] = [];

const path = encodeURIComponent;
const api = async (method: string, below: string, body?: unknown) => {
  const answer = await call(address, method, below, body);
  expect(answer.status, `${method} ${below}: ${JSON.stringify(answer.body)}`).toBeLessThan(300);
  return answer.body;
};
const publish = (text: string, by = author) => api('POST', '/v1/posts', { author: by, text });
const enqueue = (...messages: readonly object[]) =>
  api('POST', `/v1/queues/${path(queue)}/messages`, { messages });

async function open(hash: string, options: Parameters<typeof openPage>[2] = {}): Promise<Page> {
  const opened = await openPage(browser, address, options);
  opened.page.setDefaultTimeout(withinMs);
  watched.push(opened);
  await opened.page.goto(`${address}/${hash}`);
  await opened.page.locator('h1').waitFor();
  return opened.page;
}
const homeOf = (account: string) => `#/feed/${path(account)}`;
/** Loads the page anew at another address and waits until it has everything. */
async function visit(page: Page, hash: string): Promise<void> {
  await page.goto(`${address}/${hash}`);
  await page.reload();
  await page.locator('h1').waitFor();
  await settled(page);
}
const settled = (page: Page) =>
  until(async () => (await page.locator('.notice-loading').count()) === 0, {
    what: 'the content',
    boundMs: withinMs,
  });
const textsOf = (page: Page) => page.locator('.post-text').allTextContents();
const post = (page: Page, text: string) => page.getByRole('article').filter({ hasText: text });

describe.skipIf(browserPath === undefined)('the dashboard (needs Chromium)', { timeout: testMs }, () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'headgate-dashboard-'));
    product = runHeadgate(['start', '--port', '0', '--data', folder, '--accounts', '200', '--rate', '2']);
    address = await product.ready();
    browser = await launchBrowser();
    for (const account of [author, follower]) await api('PUT', `/v1/accounts/${path(account)}`);
    await api('PUT', `/v1/accounts/${path(follower)}/following/${path(author)}`);
    // A new reader is served by pull until the timeline has been built.
    await until(
      async () => {
        const { sources } = await api('GET', `/v1/accounts/${path(follower)}/home`);
        return sources.timeline === 'live';
      },
      { what: 'a timeline of the follower' },
    );
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

  it('shows what flows through the product, live', async () => {
    const page = await open('');
    await page.getByText('Live', { exact: true }).waitFor();
    await page.locator('.chart canvas').nth(5).waitFor();
    const posts = page.locator('.figure', { hasText: 'Posts' }).locator('.figure-value');
    await until(async () => /^[1-9]|^0\.[1-9]/.test((await posts.textContent()) ?? ''), {
      what: 'posts a second',
      boundMs: withinMs,
    });
    const { durability } = await api('GET', '/health');
    expect(await page.getByText(durability).count()).toBe(1);
  });

  it('shows how far a starting server has come, and goes on by itself when it stands', async () => {
    const { page } = await openPage(browser, address);
    const context = page.context();
    const answer = (body: object) => ({ status: 503, json: body, contentType: 'application/problem+json' });
    const notReady = answer({
      title: 'Service Unavailable',
      status: 503,
      detail: 'starting',
      code: 'not-ready',
    });
    const stage = 'opening the database';
    await context.route('**/v1/**', (route) => route.fulfill(notReady));
    await context.route('**/ready', (route) =>
      route.fulfill(answer({ ready: false, stage, progress: { stage, done: 3, total: 4 } })),
    );
    await page.goto(`${address}/`);
    const bar = page.getByRole('progressbar', { name: 'The server is starting' });
    await bar.waitFor();
    expect(await bar.getAttribute('value')).toBe('3');
    expect(await page.getByRole('alert').count()).toBe(0);
    expect(await page.getByText('Connecting', { exact: true }).count()).toBe(1);
    await context.unrouteAll({ behavior: 'ignoreErrors' });
    await page.locator('.chart canvas').nth(5).waitFor();
    expect(await bar.count()).toBe(0);
    await context.close();
  });

  it('is handed out under a policy that lets it load itself only, and lives by it', async () => {
    const policy = (await fetch(`${address}/`)).headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain('unsafe');
    // Whatever the policy forbids is a fault that the end of the test finds.
    const page = await open('');
    await page.locator('.chart canvas').nth(5).waitFor();
  });

  it('draws its charts again in the colours of the dark when the system turns dark', async () => {
    const page = await open('', { colorScheme: 'light' });
    await page.locator('.chart canvas').nth(5).waitFor();
    const ground = () => page.evaluate('getComputedStyle(document.body).backgroundColor');
    const light = await ground();
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await ground()).not.toBe(light);
    expect(await page.locator('.chart canvas').count()).toBe(6);
  });

  it('a post written on the page stands in the home of its author at once and in that of a follower soon', async () => {
    const page = await open(homeOf(author));
    await page.getByLabel(`Post as ${author}`).getByRole('textbox').fill('written on the page');
    await page.getByRole('button', { name: 'Post', exact: true }).click();
    await post(page, 'written on the page').getByText('own', { exact: true }).waitFor();
    await page.getByText(/In every follower’s timeline|in every follower’s timeline/).waitFor();

    await page.goto(`${address}/${homeOf(follower)}`);
    const arrived = post(page, 'written on the page');
    await arrived.waitFor();
    expect(await arrived.getByText('pushed', { exact: true }).count()).toBe(1);
  });

  it('the same draft sent twice is one post', async () => {
    const page = await open(homeOf(author));
    await page.getByLabel(`Post as ${author}`).getByRole('textbox').fill('pressed twice');
    await page.getByRole('button', { name: 'Post', exact: true }).dblclick();
    await post(page, 'pressed twice').first().waitFor();
    expect((await textsOf(page)).filter((text) => text === 'pressed twice')).toHaveLength(1);
  });

  it('tells a reader who looks that new posts are there, and shows them when asked', async () => {
    const page = await open(homeOf(follower));
    await settled(page);
    const isTold = async () => {
      await publish('while you were looking');
      return page
        .getByRole('button', { name: 'New posts are there' })
        .waitFor({ timeout: 2_000 })
        .then(() => true)
        .catch(() => false);
    };
    await until(isTold, { what: 'the hint', boundMs: 30_000 });
    await page.getByRole('button', { name: 'New posts are there' }).click();
    await post(page, 'while you were looking').first().waitFor();
    expect(await textsOf(page)).toContain('while you were looking');
  });

  it('walks home to its end and back without losing or doubling a post', async () => {
    const walker = 'walker';
    await api('PUT', `/v1/accounts/${walker}`);
    const texts = Array.from({ length: 45 }, (_, number) => `post ${number}`);
    await Promise.all(texts.map((text) => publish(text, walker)));
    const { posts } = await api('GET', `/v1/accounts/${walker}/posts?limit=100&viewer=${walker}`);
    const expected = posts.map((item: { text: string }) => item.text);
    expect(expected.toSorted()).toEqual(texts.toSorted());
    const page = await open(homeOf(walker));
    const pages: string[][] = [];
    const see = async (first: string) => {
      await page.locator('.post-text', { hasText: new RegExp(`^${first}$`) }).waitFor();
      pages.push(await textsOf(page));
    };
    const press = (name: string) =>
      page.getByRole('navigation', { name: 'Pages, above the posts' }).getByText(name).click();
    await see(expected[0]);
    await press('Older');
    await see(expected[20]);
    await press('Older');
    await see(expected[40]);
    expect(await page.getByText('Older', { exact: true }).count()).toBe(0);
    expect(pages.flat()).toEqual(expected);

    await page.getByRole('navigation', { name: 'Pages, below the posts' }).getByText('Newer').click();
    await see(expected[20]);
    expect(await page.evaluate('document.activeElement.ariaLabel')).toBe('Posts');
    expect(await page.evaluate('Math.abs(document.activeElement.getBoundingClientRect().top)')).toBeLessThan(
      2,
    );
    await press('Newer');
    await see(expected[0]);
    expect(pages.slice(3)).toEqual([pages[1], pages[0]]);
    await page.goBack();
    await see(expected[20]);
  });

  it('mute, block, unfollow and delete hold from the next look, and can be taken back where that is possible', async () => {
    await publish('seen or not');
    await until(
      async () => {
        const { items } = await api('GET', `/v1/accounts/${path(follower)}/home`);
        return items.some((item: { text?: string }) => item.text === 'seen or not');
      },
      { what: 'the post to reach the follower' },
    );
    const page = await open(homeOf(follower));
    await post(page, 'seen or not').first().waitFor();
    const isGone = () =>
      until(async () => (await post(page, 'seen or not').count()) === 0, {
        what: 'the posts to go',
        boundMs: withinMs,
      });
    const first = (name: string) => page.getByRole('article').first().getByRole('button', { name });
    const inList = async (list: string, undo: string) => {
      await page.getByRole('button', { name: list, exact: true }).click();
      await page
        .getByRole('complementary')
        .getByRole('button', { name: `${undo} ${author}` })
        .click();
    };

    await first(`Mute ${author}`).click();
    await isGone();
    await inList('Muted', 'Unmute');
    await post(page, 'seen or not').first().waitFor();

    await first(`Block ${author}`).click();
    await page.getByRole('button', { name: 'Block? Ends follows both ways' }).click();
    await isGone();
    await inList('Blocked', 'Unblock');
    await page.getByLabel('Account to follow').fill(author);
    await page.getByRole('button', { name: 'Follow', exact: true }).click();
    await post(page, 'seen or not').first().waitFor();

    await first(`Unfollow ${author}`).click();
    await isGone();
    await api('PUT', `/v1/accounts/${path(follower)}/following/${path(author)}`);

    await page.goto(`${address}/${homeOf(author)}`);
    await post(page, 'seen or not')
      .getByRole('button', { name: /^Delete post/ })
      .click();
    await page.getByRole('button', { name: 'Delete for good?' }).click();
    await isGone();
    expect((await api('GET', `/v1/accounts/${path(author)}/home`)).items).not.toContainEqual(
      expect.objectContaining({ text: 'seen or not' }),
    );
  });

  it('shows a problem as the API tells it: code, field, value and what was expected', async () => {
    const page = await open(homeOf('nobody'));
    const problem = page.getByRole('alert');
    await problem.getByText('account-unknown').waitFor();
    expect(await problem.textContent()).toContain('nobody');

    const long = 'x'.repeat(129);
    await page.getByLabel('Account id').fill('short');
    await page.goto(`${address}/${homeOf(long)}`);
    await problem.getByText('invalid-input').waitFor();
    for (const part of ['Field', 'Value', 'Expected', '128'])
      expect(await problem.textContent()).toContain(part);

    await page.goto(`${address}/#/nowhere`);
    await page.getByText('Nothing is at this address.').waitFor();
  });

  it('finds a message by state and metadata and shows it whole', async () => {
    await enqueue(
      { id: 'found/1', payload: { to: 'Ada' }, metadata: { kind: 'parcel' } },
      { id: 'other', payload: null, metadata: { kind: 'letter' } },
    );
    const page = await open('#/queues');
    await page.getByRole('link', { name: queue }).click();
    await page.getByRole('link', { name: 'other' }).waitFor();
    await page.getByLabel('Metadata key').fill('kind');
    await page.getByLabel('equals').fill('parcel');
    await page.getByRole('button', { name: 'Add filter' }).click();
    await until(async () => (await page.getByRole('link', { name: 'other' }).count()) === 0, {
      what: 'the filter',
      boundMs: withinMs,
    });
    await page.getByRole('link', { name: 'found/1' }).click();
    await page.getByRole('region', { name: 'Payload as JSON' }).getByText('"Ada"').waitFor();
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('found/1');
    await page.getByRole('button', { name: 'Cancel message found/1' }).click();
    await page.getByRole('button', { name: 'Cancel for good?' }).click();
    await page.locator('.message-state', { hasText: 'canceled' }).waitFor();
  });

  it('keeps every column in sight beside long ids and much metadata, and writes from right to left what is', async () => {
    const name = 'n'.repeat(120);
    const long = 'i'.repeat(500);
    const metadata = Object.fromEntries(
      Array.from({ length: 16 }, (_, n) => [`${n}-${'k'.repeat(90)}`, 'v'.repeat(600)]),
    );
    await api('POST', `/v1/queues/${name}/messages`, { messages: [{ id: long, payload: 1, metadata }] });
    const page = await open('#/queues', { viewport: { width: 1280, height: 800 } });
    const inSight = async (column: string): Promise<boolean> => {
      const box = await page.getByRole('columnheader', { name: column, exact: true }).boundingBox();
      return box !== null && box.x + box.width <= 1280;
    };
    await page.getByRole('link', { name }).waitFor();
    expect(await inSight('Errored')).toBe(true);
    await page.getByRole('link', { name }).click();
    await page.getByRole('link', { name: long }).waitFor();
    expect(await inSight('State since')).toBe(true);
    expect((await page.locator('tbody tr').boundingBox())?.height).toBeLessThan(200);
    await page.getByText('and 13 more').waitFor();

    await publish('مرحبا بالعالم');
    await visit(page, homeOf(author));
    await post(page, 'مرحبا').waitFor();
    const fromTheRight = await page.evaluate(`(() => {
      const text = [...document.querySelectorAll('.post-text')].find(({ textContent }) => textContent.startsWith('مرحبا'));
      const range = document.createRange();
      range.setStart(text.firstChild, 0);
      range.setEnd(text.firstChild, 1);
      return text.getBoundingClientRect().right - range.getBoundingClientRect().right;
    })()`);
    expect(fromTheRight).toBeLessThan(2);
  });

  it('shows every change of a message that failed, and requeues it', async () => {
    const failing = 'failing';
    await api('POST', `/v1/queues/${failing}/messages`, { messages: [{ id: 'bad', payload: null }] });
    const { messages } = await api('POST', `/v1/queues/${failing}/dequeue`, {});
    const { leaseToken } = messages[0];
    await api('POST', `/v1/queues/${failing}/messages/bad/fail`, { leaseToken, error: 'no such street' });

    const page = await open(`#/queues/${failing}?state=errored`);
    await page.getByRole('link', { name: 'bad' }).click();
    await page.getByText('no such street').waitFor();
    const steps = page.getByRole('region', { name: /^History/ }).locator('tbody tr');
    await until(async () => (await steps.count()) >= 3, { what: 'the history', boundMs: withinMs });
    const moves = await steps.locator('td:nth-child(3)').allTextContents();
    expect(moves).toEqual(['pending', 'running', 'errored']);

    await page.getByRole('button', { name: 'Requeue message bad' }).click();
    await page.locator('.message-state', { hasText: 'pending' }).waitFor();
    expect((await api('GET', `/v1/queues/${failing}/messages/bad`)).state).toBe('pending');
  });

  it('lists what recurs with its rule and its next tick', async () => {
    const [name, into] = ['nightly "report" & more', 'reports'];
    const rule = { queue: into, cron: '0 3 * * *', timeZone: 'Europe/Berlin', message: { payload: 1 } };
    const { next } = await api('PUT', `/v1/recurring/${path(name)}`, rule);
    const page = await open('#/queues');
    const cells = page.getByRole('row', { name }).locator('th, td');
    await cells.first().waitFor();
    const texts = await cells.allTextContents();
    expect(texts.slice(0, 4)).toEqual([name, into, rule.cron, rule.timeZone]);
    expect(texts[4]).toMatch(/\d\d:\d\d:\d\d in \d+ (s|min|h|d)$/);
    expect(await cells.nth(4).getAttribute('title')).toBe(new Date(next).toISOString());
    await cells.nth(1).getByRole('link', { name: into }).click();
    await page.getByRole('heading', { level: 1, name: into }).waitFor();
  });

  it('pauses a queue and opens it again', async () => {
    await enqueue({ id: 'waits', payload: null });
    const page = await open(`#/queues/${path(queue)}`);
    await page.getByRole('button', { name: 'Pause dequeue' }).click();
    await page.getByRole('button', { name: 'Resume dequeue' }).waitFor();
    expect((await api('GET', `/v1/queues/${path(queue)}`)).configuration.dequeueBlocked).toBe(true);
    await page.getByRole('button', { name: 'Resume dequeue' }).click();
    await page.getByRole('button', { name: 'Pause dequeue' }).waitFor();
    expect((await api('GET', `/v1/queues/${path(queue)}`)).configuration.dequeueBlocked).toBe(false);
  });

  const everyPage = (): readonly string[] => [
    '#/',
    '#/queues',
    `#/queues/${path(queue)}`,
    `#/queues/${path(queue)}?state=errored&where.kind=${'x'.repeat(60)}`,
    `#/queues/${path(queue)}/messages/looked-at`,
    '#/feed',
    homeOf(author),
    homeOf('nobody'),
    '#/nowhere',
  ];

  it('has landmarks, one heading of the first level, and a name on every control, on every page', async () => {
    await enqueue({
      id: 'looked-at',
      payload: { wide: 'x'.repeat(300) },
      metadata: { kind: 'x'.repeat(60) },
    });
    await publish(`https://example.org/${'x'.repeat(300)}`);
    const faults: string[] = [];
    const page = await open('');
    for (const hash of everyPage()) {
      await visit(page, hash);
      faults.push(...(await accessibilityFaults(page)).map((fault) => `${hash}: ${fault}`));
    }
    expect(faults).toEqual([]);
  });

  it('does not scroll sideways at the width of a phone, on any page', async () => {
    const wide: string[] = [];
    const page = await open('', { viewport: { width: 360, height: 740 } });
    for (const hash of everyPage()) {
      await visit(page, hash);
      const overflow = await sidewaysOverflow(page);
      if (overflow > 0) wide.push(`${hash}: ${overflow} pixels`);
    }
    expect(wide).toEqual([]);
  });

  it('is used by keyboard: the first stop skips to the content, a new page takes the focus at its heading', async () => {
    const page = await open('#/queues');
    const focused = () => page.evaluate('document.activeElement.id || document.activeElement.tagName');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    expect(await focused()).toBe('content');
    expect(page.url()).toContain('#/queues');
    await page.getByRole('navigation', { name: 'Sections' }).getByText('Feed').press('Enter');
    await page.getByRole('heading', { name: 'Feed', level: 1 }).waitFor();
    await until(async () => (await focused()) === 'H1', {
      what: 'the focus at the heading',
      boundMs: withinMs,
    });
    expect(await page.title()).toBe('Feed · Headgate');
  });

  it('says that the connection is lost when the server has gone', async () => {
    const page = await open('');
    await page.getByText('Live', { exact: true }).waitFor();
    await product.kill('SIGTERM');
    await page.getByText('Connection lost, trying again').waitFor();
    const problem = page.getByRole('alert');
    await problem.waitFor();
    expect(await problem.textContent()).toContain('unreachable');
  });
});
