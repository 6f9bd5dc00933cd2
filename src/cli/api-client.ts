/** The way in of commands and of the demo: the HTTP API as any program would use it, with a bound on every wait. */
import { HeadgateError } from '../errors.js';

export interface ApiClient {
  get<T>(path: string): Promise<T>;
  post<T>(path: string, body: unknown): Promise<T>;
  patch<T>(path: string, body: unknown): Promise<T>;
  put<T>(path: string, body?: unknown): Promise<T>;
  delete<T>(path: string): Promise<T>;
}

/** No answer came, or one that no Headgate gives; the message names the address. */
export class ServerSilent extends Error {
  override readonly name = 'ServerSilent';
}

/** Longer than the longest waiting dequeue of the API. */
const timeoutMs = 40_000;

async function ask(url: string, request: RequestInit): Promise<Response> {
  try {
    return await fetch(url, request);
  } catch (cause) {
    const { origin } = new URL(url);
    if (!(cause instanceof Error)) throw cause;
    const why = cause.cause instanceof Error ? cause.cause.message || cause.cause.name : cause.message;
    throw new ServerSilent(`no server answers at ${origin}: ${why}`, { cause });
  }
}

async function jsonOf(response: Response, address: string): Promise<unknown> {
  const text = await response.text();
  try {
    return text === '' ? undefined : JSON.parse(text);
  } catch (cause) {
    const what = `what answers at ${address} is not Headgate: ${response.status} without JSON`;
    throw new ServerSilent(what, { cause });
  }
}

/** `apiKey` is sent as a bearer key where the server wants one. */
export function createApiClient(address: string, apiKey?: string): ApiClient {
  const request = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const response = await ask(`${address}${path}`, {
      method,
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    const answer = await jsonOf(response, address);
    if (response.ok) return answer;
    const problem = answer as { code?: string; detail?: string } | undefined;
    throw new HeadgateError(
      problem?.code ?? 'internal-error',
      response.status,
      problem?.detail ?? `${method} ${path}: ${response.status}`,
    );
  };
  return {
    get: <T>(path: string) => request('GET', path) as Promise<T>,
    post: <T>(path: string, body: unknown) => request('POST', path, body) as Promise<T>,
    patch: <T>(path: string, body: unknown) => request('PATCH', path, body) as Promise<T>,
    put: <T>(path: string, body?: unknown) => request('PUT', path, body) as Promise<T>,
    delete: <T>(path: string) => request('DELETE', path) as Promise<T>,
  };
}
