/** A real browser for the dashboard tests: headless Chromium, and a page that remembers everything that went wrong in it. */
import { existsSync } from 'node:fs';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';

const candidates = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const flags = [
  '--no-sandbox',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Undefined where no browser is installed. */
export const browserPath = candidates.find((path) => existsSync(path));

export function launchBrowser(): Promise<Browser> {
  if (browserPath === undefined) throw new Error(`no browser at ${candidates.join(', ')}`);
  return chromium.launch({ executablePath: browserPath, args: flags });
}

export interface WatchedPage {
  readonly page: Page;
  /** Errors of the console and of scripts, and requests to anywhere but the server; an answered problem is none. */
  readonly faults: string[];
}

/** A page with a context of its own. `origin` is the only place it may talk to. */
export async function openPage(
  browser: Browser,
  origin: string,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(`script: ${error.message}`));
  page.on('console', (message) => {
    // The browser writes this about every answer that is not 2xx; the listener below tells the good from the bad.
    const isAboutAnswer = message.text().startsWith('Failed to load resource');
    if (['error', 'warning'].includes(message.type()) && !isAboutAnswer) faults.push(message.text());
  });
  page.on('response', (response) => {
    const isJson = (response.headers()['content-type'] ?? '').includes('json');
    if (response.status() >= 400 && !isJson) faults.push(`${response.status()} ${response.url()}`);
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(`${origin}/`)) faults.push(`request to ${request.url()}`);
  });
  return { page, faults };
}

interface AccessibilityNode {
  readonly ignored: boolean;
  readonly role?: { readonly value?: string };
  readonly name?: { readonly value?: string };
}

const controlRoles = [
  'button',
  'link',
  'textbox',
  'combobox',
  'checkbox',
  'radio',
  'progressbar',
  'image',
  'region',
];
const landmarkRoles = ['banner', 'navigation', 'main'];

/** What a screen reader would miss, as the browser itself computes roles and names. */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  const session = await page.context().newCDPSession(page);
  const { nodes } = (await session.send('Accessibility.getFullAXTree')) as unknown as {
    nodes: AccessibilityNode[];
  };
  await session.detach();
  const shown = nodes.filter((node) => !node.ignored);
  const roleOf = (node: AccessibilityNode): string => node.role?.value ?? '';
  const nameless = shown
    .filter((node) => controlRoles.includes(roleOf(node)) && (node.name?.value ?? '').trim() === '')
    .map((node) => `a ${roleOf(node)} without a name`);
  const missing = landmarkRoles
    .filter((role) => !shown.some((node) => roleOf(node) === role))
    .map((role) => `no ${role} landmark`);
  const h1Count = await page.locator('h1').count();
  return [...nameless, ...missing, ...(h1Count === 1 ? [] : [`${h1Count} h1 headings`])];
}

/** How many pixels of the page stand out of the window sideways. */
export async function sidewaysOverflow(page: Page): Promise<number> {
  return Number(await page.evaluate('document.documentElement.scrollWidth - window.innerWidth'));
}
