/** `headgate queue …` as an operator types it, against a running server and, where none runs, on the folder itself. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { addQueue } from '../../src/cli/commands/queue.js';
import { startTestServer, type TestServer } from '../server/test-server.js';
import { runHeadgate } from './headgate-process.js';

let server: TestServer;
let folder: string;
beforeAll(async () => {
  server = await startTestServer();
  folder = await mkdtemp(join(tmpdir(), 'headgate-queue-'));
});
afterAll(async () => {
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

async function headgate(...args: string[]): Promise<{ code: number | string; output: string }> {
  const started = runHeadgate(['queue', ...args]);
  const code = await started.exit();
  return { code, output: started.output() };
}
// oxlint-disable-next-line typescript/no-explicit-any -- answers are looked at by tests only
async function json(...args: string[]): Promise<any> {
  const { code, output } = await headgate(...args, '--url', server.address, '--json');
  expect([code, output]).toEqual([0, expect.anything()]);
  return JSON.parse(output);
}
/** In this process: for what is not about the process, which costs most of a second. */
async function runHere(...args: string[]): Promise<string> {
  let output = '';
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    output += String(text);
    return true;
  });
  try {
    const program = new Command().exitOverride();
    addQueue(program, {});
    await program.parseAsync(['queue', ...args, '--url', server.address], { from: 'user' });
  } finally {
    write.mockRestore();
  }
  return output;
}
/** What a test begins with is brought there over HTTP: a command costs a process. */
async function enqueue(queue: string, ...messages: { id: string; payload: unknown }[]): Promise<void> {
  const { status } = await server.call('POST', `/v1/queues/${queue}/messages`, { messages });
  expect(status).toBe(200);
}

describe('headgate queue', () => {
  it('takes a message from enqueue to completed', { timeout: 120_000 }, async () => {
    const [made] = await json(
      'enqueue',
      'mail',
      '--payload',
      '{"to":"ann"}',
      '--id',
      'm 1',
      '--priority',
      '-5',
      '--metadata',
      'region=eu',
    );
    expect(made).toMatchObject({ id: 'm 1', created: true, state: 'pending' });
    expect(await json('depth', 'mail', '--where', 'region=eu')).toMatchObject({ pending: 1 });
    expect(await json('depth', 'mail', '--where', 'region=us')).toMatchObject({ pending: 0 });
    const { messages } = await json('dequeue', 'mail', '--where', 'region=eu', '--lease-ms', '600000');
    expect(messages).toMatchObject([{ id: 'm 1', priority: -5, payload: { to: 'ann' } }]);
    expect(await json('complete', 'mail', 'm 1', messages[0].leaseToken, '--result', '"sent"')).toMatchObject(
      { state: 'completed' },
    );
    expect(await json('get', 'mail', 'm 1')).toMatchObject({ state: 'completed', result: 'sent' });
    expect((await json('history', 'mail', 'm 1')).map((event: { to: string }) => event.to)).toEqual([
      'pending',
      'running',
      'completed',
    ]);
  });

  it('takes ids that begin with a dash behind --', { timeout: 120_000 }, async () => {
    await enqueue('dashes', { id: '-7', payload: 1 });
    const { code, output } = await headgate('get', 'dashes', '--url', server.address, '--json', '--', '-7');
    expect([code, JSON.parse(output)]).toMatchObject([0, { id: '-7', state: 'pending' }]);
  });

  it('pauses, resumes, configures, cancels and purges', { timeout: 120_000 }, async () => {
    await enqueue('held', { id: 'a', payload: 1 }, { id: 'b', payload: 2 });
    expect(await json('pause', 'held')).toMatchObject({ dequeueBlocked: true });
    expect((await json('dequeue', 'held')).messages).toEqual([]);
    expect(await json('resume', 'held')).toMatchObject({ dequeueBlocked: false });
    expect(await json('configure', 'held', '{"attemptsMax":7}')).toMatchObject({ attemptsMax: 7 });
    expect(await json('cancel', 'held', 'a')).toMatchObject({ state: 'canceled' });
    expect(await json('purge', 'held', 'pending')).toEqual({ purged: 1 });
    expect((await json('list')).find((queue: { queue: string }) => queue.queue === 'held')).toMatchObject({
      pending: 0,
    });
  });

  it('fails a message, lets all that failed wait again, and sets what recurs', {
    timeout: 120_000,
  }, async () => {
    await enqueue('again', { id: 'a', payload: 1 });
    const { body } = await server.call('POST', '/v1/queues/again/dequeue', {});
    const [{ leaseToken }] = body.messages;
    expect(await json('fail', 'again', 'a', leaseToken, '--error', 'no route')).toMatchObject({
      state: 'errored',
    });
    expect(await json('requeue', 'again', '--all')).toEqual({ requeued: 1 });
    const next = await json(
      'recur',
      'nightly',
      'again',
      '0 3 * * *',
      '--time-zone',
      'Asia/Tokyo',
      '--payload',
      '{}',
    );
    expect(new Date(next.next).toISOString()).toMatch(/T18:00:00.000Z$/);
    const { body: all } = await server.call('GET', '/v1/recurring');
    expect(all.recurring).toMatchObject([{ name: 'nightly', queue: 'again', message: { payload: {} } }]);
  });

  it('changes, extends, gives back, requeues one, pauses enqueue, and ends what recurs', async () => {
    await enqueue('rest', { id: 'm', payload: 1 });
    const here = async (...args: string[]) => JSON.parse(await runHere(...args, '--json'));
    expect(await here('change', 'rest', 'm', '--priority', '-3', '--payload', '{"n":2}')).toMatchObject({
      id: 'm',
      state: 'pending',
      version: 2,
    });
    const take = async () =>
      (await server.call('POST', '/v1/queues/rest/dequeue', { leaseMs: 60_000 })).body.messages[0];
    const lease = await take();
    expect(lease).toMatchObject({ priority: -3, payload: { n: 2 } });
    const longer = await here('extend', 'rest', 'm', lease.leaseToken, '--lease-ms', '600000');
    expect(longer.leaseUntil - lease.leaseUntil).toBeGreaterThan(500_000);
    expect(await here('release', 'rest', 'm', lease.leaseToken, '--delay-ms', '60000')).toMatchObject({
      state: 'invisible',
    });
    await here('change', 'rest', 'm', '--visible-at', '0');
    const { leaseToken, attempts } = await take();
    expect(attempts).toBe(1);
    await server.call('POST', '/v1/queues/rest/messages/m/fail', { leaseToken, error: 'x' });
    expect(await here('requeue', 'rest', 'm')).toMatchObject({ state: 'pending' });
    expect(await here('pause', 'rest', '--enqueue')).toMatchObject({
      enqueueBlocked: true,
      dequeueBlocked: false,
    });
    expect(await here('resume', 'rest', '--enqueue')).toMatchObject({ enqueueBlocked: false });
    await here('recur', 'hourly', 'rest', '0 * * * *', '--payload', '{"n":3}', '--unique-while-live');
    expect(await runHere('recurring')).toMatch(/hourly +rest +0 \* \* \* \* +UTC +.*\{"n":3\}/);
    expect(await here('end-recurring', 'hourly')).toEqual({ name: 'hourly' });
    await expect(here('end-recurring', 'hourly')).rejects.toThrow('hourly');
  });

  it('prints a table for people', { timeout: 120_000 }, async () => {
    await enqueue(
      'shown',
      { id: 'x', payload: { n: 1 } },
      { id: 'a\u001b[2J\nb', payload: 'y'.repeat(9_000) },
    );
    const { output } = await headgate('peek', 'shown', '--url', server.address);
    expect(output.split('\n')).toHaveLength(4);
    expect(output).toContain('a\\u001b[2J\\u000ab ');
    expect(output).toContain('y… (9002 characters)');
    expect(output.split('\n')[0]).toMatch(/^id +state +priority +attempts +enqueued +payload$/);
    expect(output).toContain('{"n":1}');
    const depth = await headgate('depth', 'shown', '--url', server.address);
    expect(depth.output).toMatch(/^invisible +pending +running\n0 +2 +0\n$/);
  });

  it('shows what has ended from the newest on', { timeout: 120_000 }, async () => {
    for (const id of ['first', 'second']) {
      await enqueue('ended', { id, payload: 1 });
      expect((await server.call('POST', `/v1/queues/ended/messages/${id}/cancel`, {})).body.state).toBe(
        'canceled',
      );
    }
    const idsOf = (page: { messages: { id: string }[] }) => page.messages.map(({ id }) => id);
    expect(idsOf(await json('peek', 'ended', '--state', 'canceled'))).toEqual(['first', 'second']);
    const newest = await json('peek', 'ended', '--state', 'canceled', '--newest-first', '--limit', '1');
    expect(idsOf(newest)).toEqual(['second']);
    const rest = await json('peek', 'ended', '--state', 'canceled', '--newest-first', '--after', newest.next);
    expect(idsOf(rest)).toEqual(['first']);
    const refused = await headgate('peek', 'ended', '--newest-first', '--url', server.address);
    expect([refused.code, refused.output]).toEqual([2, expect.stringContaining('newestFirst: expected')]);
  });

  it('opens the folder itself where no server runs', { timeout: 120_000 }, async () => {
    expect((await headgate('enqueue', 'alone', '--payload', '1', '--id', 'x', '--data', folder)).code).toBe(
      0,
    );
    const { output } = await headgate('get', 'alone', 'x', '--data', folder, '--json');
    expect(JSON.parse(output)).toMatchObject({ id: 'x', state: 'pending' });
  });

  it.each([
    [['get', 'mail', 'nothing'], 1, 'message-unknown'],
    [['enqueue', 'mail', '--payload', 'broken{'], 2, '--payload: expected JSON'],
    [['enqueue', 'mail', '--payload', '1', '--priority', '1.5'], 2, 'priority: expected'],
    [['peek', 'mail', '--where', 'nonsense'], 2, '--where: expected KEY=VALUE'],
    [['requeue', 'mail'], 2, '<id>: expected the id of a message, or --all'],
  ])(
    'answers %j with exit code %i and names what is wrong',
    { timeout: 120_000 },
    async (args, code, message) => {
      const answer = await headgate(...args, '--url', server.address);
      expect(answer.output).toContain(message);
      expect(answer.code).toBe(code);
    },
  );
});
