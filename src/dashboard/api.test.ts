import { afterEach, expect, it, vi } from 'vitest';
import { ApiProblem, apiPath, asProblem, call } from './api.js';

afterEach(() => vi.unstubAllGlobals());

function serverAnswers(status: number, body: string): void {
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(body, { status })));
}
const problemOfCall = async (): Promise<ApiProblem> => {
  const outcome = await call('/v1/overview').catch((error: unknown) => error);
  if (outcome instanceof ApiProblem) return outcome;
  throw new Error(`expected a problem, got ${String(outcome)}`);
};

it('an id is one segment of the path whatever it holds', () => {
  expect(apiPath('accounts', 'a/b?c#d %', 'home')).toBe('/v1/accounts/a%2Fb%3Fc%23d%20%25/home');
});

it('an id that a browser cannot send is refused by name instead of asking for something else', () => {
  for (const id of ['', '.', '..', '\uD800']) {
    expect(() => apiPath('accounts', id)).toThrow(
      expect.objectContaining({ code: 'invalid-input', field: 'id' }),
    );
  }
});

it('a refusal keeps code, field, value and expectation of the server', async () => {
  const told = {
    code: 'invalid-input',
    title: 'Unprocessable Content',
    field: 'text',
    value: '""',
    expected: 'a text',
  };
  serverAnswers(422, JSON.stringify(told));
  expect(await problemOfCall()).toMatchObject({ ...told, status: 422 });
});

it('a change that got no answer is told as one that may have been done', async () => {
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('Failed to fetch')));
  expect((await problemOfCall()).message).toContain('try again');
  const change = await call('/v1/queues/q/pause', { method: 'POST' }).catch((error: unknown) => error);
  expect(change).toMatchObject({
    code: 'unreachable',
    message: expect.stringContaining('not known whether this was done'),
  });
});

it('an answer that is not JSON is a problem with the status, not a fault of the page', async () => {
  serverAnswers(502, '<html>Bad Gateway</html>');
  expect(await problemOfCall()).toMatchObject({ code: 'http-502', status: 502 });
  serverAnswers(200, '<html>');
  expect(await problemOfCall()).toMatchObject({ code: 'unexpected-answer' });
});

it('a server that cannot be reached is a problem of its own', async () => {
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('fetch failed')));
  expect(await problemOfCall()).toMatchObject({ code: 'unreachable', status: 0 });
});

it('anything else that is thrown is shown as a fault of the page', () => {
  expect(asProblem(new Error('oops'))).toMatchObject({ code: 'page-fault', message: 'Error: oops' });
});
