/**
 * The one door to the HTTP API. Guarantees: ids are percent-encoded whatever they hold, and whatever goes wrong
 * (the server refuses, answers something else, or cannot be reached) arrives as an ApiProblem that can be shown.
 */
export class ApiProblem extends Error {
  override readonly name = 'ApiProblem';
  /** HTTP status; 0 when no answer came. */
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly field: string | undefined;
  readonly value: unknown;
  readonly expected: string | undefined;

  constructor(status: number, code: string, title: string, details: ProblemDetails = {}) {
    super(details.detail ?? title);
    this.status = status;
    this.code = code;
    this.title = title;
    this.field = details.field;
    this.value = details.value;
    this.expected = details.expected;
  }
}

interface ProblemDetails {
  readonly detail?: string | undefined;
  readonly field?: string | undefined;
  readonly value?: unknown;
  readonly expected?: string | undefined;
}

/** `query` values that are undefined are left out. */
export interface ApiRequest {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
  /** A status that is an answer here, not a problem: `/ready` says how far it is with a 503. */
  readonly alsoAnswer?: number;
}

let onUnauthorized: () => void = () => {};

/** Is called whenever the server wants a key that this page has not, or no longer. */
export function whenUnauthorized(listener: () => void): void {
  onUnauthorized = listener;
}

/** Calls the API. `Answer` is what the OpenAPI document of the server promises for this path. */
export async function call<Answer>(path: string, request: ApiRequest = {}): Promise<Answer> {
  const init: RequestInit = { method: request.method ?? 'GET', headers: { accept: 'application/json' } };
  if (request.signal !== undefined) init.signal = request.signal;
  if (request.body !== undefined) {
    init.headers = { accept: 'application/json', 'content-type': 'application/json' };
    init.body = JSON.stringify(request.body);
  }
  const isQuestion = init.method === 'GET';
  let response: Response;
  try {
    response = await fetch(path + queryText(request.query ?? {}), init);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiProblem(0, 'unreachable', 'The server does not answer', {
      detail: isQuestion
        ? 'The connection failed. See whether the server still runs, and try again.'
        : 'The connection failed, so it is not known whether this was done. Look again when the server answers.',
    });
  }
  const text = await response.text();
  if (!response.ok && response.status !== request.alsoAnswer) {
    if (response.status === 401) onUnauthorized();
    throw problemOf(response.status, text);
  }
  return (text === '' ? undefined : parseJson(text, response.status)) as Answer;
}

/** The path of an API resource; every part after the first is one encoded segment. */
export function apiPath(...segments: readonly string[]): string {
  return `/v1/${segments.map(encodeSegment).join('/')}`;
}

/** `where.KEY=VALUE` pairs as the API takes them. */
export function whereQuery(where: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(where).map(([key, value]) => [`where.${key}`, value]));
}

export function asProblem(error: unknown): ApiProblem {
  if (error instanceof ApiProblem) return error;
  return new ApiProblem(0, 'page-fault', 'The page made a mistake', { detail: String(error) });
}

function encodeSegment(segment: string): string {
  // Browsers fold `.` and `..` away even when they are percent-encoded, and a lone surrogate has no encoding.
  if (segment === '' || segment === '.' || segment === '..' || /\p{Surrogate}/u.test(segment)) {
    throw new ApiProblem(0, 'invalid-input', 'This id cannot stand in an address', {
      detail: 'The id cannot be sent by a browser.',
      field: 'id',
      value: segment,
      expected: 'a text that is not empty, "." or ".." and holds no broken characters',
    });
  }
  return encodeURIComponent(segment);
}

function queryText(query: Readonly<Record<string, string | undefined>>): string {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value !== undefined) parameters.set(key, value);
  const text = parameters.toString();
  return text === '' ? '' : `?${text}`;
}

function problemOf(status: number, text: string): ApiProblem {
  let body: Record<string, unknown> = {};
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null) body = parsed as Record<string, unknown>;
  } catch {
    // Not JSON: a proxy in between has answered, and the status says the most.
  }
  const textOf = (key: string): string | undefined =>
    typeof body[key] === 'string' ? (body[key] as string) : undefined;
  return new ApiProblem(
    status,
    textOf('code') ?? `http-${status}`,
    textOf('title') ?? `The server answered ${status}`,
    {
      detail: textOf('detail'),
      field: textOf('field'),
      value: body['value'],
      expected: textOf('expected'),
    },
  );
}

function parseJson(text: string, status: number): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ApiProblem(status, 'unexpected-answer', 'The server answered something that is not JSON');
  }
}
