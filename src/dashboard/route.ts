/**
 * The addresses of the dashboard: what stands behind the `#`. Guarantees: every route survives format and parse
 * whatever characters its ids hold, and an address that is not one of ours is `unknown`, never an exception.
 */
export const messageStates = ['pending', 'running', 'invisible', 'errored', 'completed', 'canceled'] as const;
export type MessageState = (typeof messageStates)[number];

export const deliveryStates = [
  'waiting',
  'sending',
  'sent',
  'failed',
  'expired',
  'suppressed',
  'ambiguous',
] as const;
export type DeliveryState = (typeof deliveryStates)[number];

export const campaignStates = ['running', 'paused', 'streamed', 'canceled'] as const;
export type CampaignState = (typeof campaignStates)[number];

/** Where a page of home begins: `after` walks towards older posts, `before` towards newer ones. */
export interface HomeCursor {
  readonly direction: 'after' | 'before';
  readonly value: string;
}

export type Route =
  | { readonly page: 'overview' }
  | { readonly page: 'queues' }
  | {
      readonly page: 'queue';
      readonly queue: string;
      readonly state: MessageState;
      readonly where: Readonly<Record<string, string>>;
      readonly after: string | undefined;
    }
  | { readonly page: 'message'; readonly queue: string; readonly id: string }
  | { readonly page: 'feed' }
  | { readonly page: 'notify' }
  | {
      readonly page: 'deliveries';
      readonly state: DeliveryState | undefined;
      readonly kind: string | undefined;
      readonly user: string | undefined;
      readonly before: string | undefined;
    }
  | { readonly page: 'notification'; readonly id: string }
  | {
      readonly page: 'campaigns';
      readonly state: CampaignState | undefined;
      readonly before: string | undefined;
    }
  | { readonly page: 'campaign'; readonly id: string }
  | { readonly page: 'prices' }
  | { readonly page: 'home'; readonly account: string; readonly cursor: HomeCursor | undefined }
  | { readonly page: 'unknown'; readonly address: string };

export function parseRoute(hash: string): Route {
  const address = hash.replace(/^#/, '');
  const [path = '', query = ''] = splitOnce(address, '?');
  const segments = decodeSegments(path);
  if (segments === undefined) return { page: 'unknown', address };
  const [section, first, second, third, ...rest] = segments;
  const parameters = new URLSearchParams(query);
  if (rest.length > 0) return { page: 'unknown', address };
  if (section === undefined) return { page: 'overview' };
  if (section === 'queues') {
    if (first === undefined) return { page: 'queues' };
    if (second === undefined) return queueRoute(first, parameters);
    if (second === 'messages' && third !== undefined) return { page: 'message', queue: first, id: third };
  }
  if (section === 'feed' && second === undefined) {
    return first === undefined
      ? { page: 'feed' }
      : { page: 'home', account: first, cursor: homeCursor(parameters) };
  }
  if (section === 'notify' && third === undefined) {
    if (first === undefined) return { page: 'notify' };
    if (first === 'deliveries' && second === undefined) return deliveriesRoute(parameters);
    if (first === 'campaigns')
      return second === undefined ? campaignsRoute(parameters) : { page: 'campaign', id: second };
    if (first === 'notifications' && second !== undefined) return { page: 'notification', id: second };
  }
  if (section === 'prices' && first === undefined) return { page: 'prices' };
  return { page: 'unknown', address };
}

export function formatRoute(route: Route): string {
  switch (route.page) {
    case 'overview':
      return '#/';
    case 'queues':
      return '#/queues';
    case 'queue': {
      const parameters = new URLSearchParams();
      if (route.state !== 'pending') parameters.set('state', route.state);
      for (const [key, value] of Object.entries(route.where)) parameters.set(`where.${key}`, value);
      if (route.after !== undefined) parameters.set('after', route.after);
      return `#/queues/${encode(route.queue)}${withMark(parameters)}`;
    }
    case 'message':
      return `#/queues/${encode(route.queue)}/messages/${encode(route.id)}`;
    case 'feed':
      return '#/feed';
    case 'home': {
      const parameters = new URLSearchParams();
      if (route.cursor !== undefined) parameters.set(route.cursor.direction, route.cursor.value);
      return `#/feed/${encode(route.account)}${withMark(parameters)}`;
    }
    case 'notify':
      return '#/notify';
    case 'deliveries': {
      const parameters = new URLSearchParams();
      for (const name of ['state', 'kind', 'user', 'before'] as const)
        if (route[name] !== undefined) parameters.set(name, route[name]);
      return `#/notify/deliveries${withMark(parameters)}`;
    }
    case 'notification':
      return `#/notify/notifications/${encode(route.id)}`;
    case 'campaigns': {
      const parameters = new URLSearchParams();
      for (const name of ['state', 'before'] as const)
        if (route[name] !== undefined) parameters.set(name, route[name]);
      return `#/notify/campaigns${withMark(parameters)}`;
    }
    case 'campaign':
      return `#/notify/campaigns/${encode(route.id)}`;
    case 'prices':
      return '#/prices';
    case 'unknown':
      return `#${route.address}`;
  }
}

/** The route of a queue's messages, from the first page on. */
export function queueRoute(queue: string, parameters = new URLSearchParams()): Route {
  const state = messageStates.find((known) => known === parameters.get('state')) ?? 'pending';
  const where: Record<string, string> = {};
  for (const [key, value] of parameters)
    if (key.startsWith('where.')) where[key.slice('where.'.length)] = value;
  return { page: 'queue', queue, state, where, after: parameters.get('after') ?? undefined };
}

/** The route of deliveries, from the newest on. */
export function deliveriesRoute(parameters = new URLSearchParams()): Extract<Route, { page: 'deliveries' }> {
  return {
    page: 'deliveries',
    state: deliveryStates.find((known) => known === parameters.get('state')),
    kind: parameters.get('kind') ?? undefined,
    user: parameters.get('user') ?? undefined,
    before: parameters.get('before') ?? undefined,
  };
}

/** The route of campaigns, from the newest on. */
export function campaignsRoute(parameters = new URLSearchParams()): Extract<Route, { page: 'campaigns' }> {
  return {
    page: 'campaigns',
    state: campaignStates.find((known) => known === parameters.get('state')),
    before: parameters.get('before') ?? undefined,
  };
}

function homeCursor(parameters: URLSearchParams): HomeCursor | undefined {
  for (const direction of ['after', 'before'] as const) {
    const value = parameters.get(direction);
    if (value !== null) return { direction, value };
  }
  return undefined;
}

function decodeSegments(path: string): string[] | undefined {
  try {
    return path
      .split('/')
      .filter((segment) => segment !== '')
      .map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + separator.length)];
}

/** A lone surrogate has no percent-encoding; it is shown as U+FFFD instead of breaking the page. */
function encode(segment: string): string {
  return encodeURIComponent(segment.replace(/\p{Surrogate}/gu, '\uFFFD'));
}

function withMark(parameters: URLSearchParams): string {
  const text = parameters.toString();
  return text === '' ? '' : `?${text}`;
}
