/** N36: neither a code nor a provider's secret is in the log, a metric, an error or the history, whatever goes wrong. */
import { describe, expect, it } from 'vitest';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  createResendProvider,
  createSmppProvider,
  createSmtpProvider,
  type Provider,
} from '../../src/notify/index.js';
import type { Log } from '../../src/log.js';
import {
  faultList,
  startHttpCounterpart,
  startSmppCounterpart,
  startSmtpCounterpart,
  type Fault,
} from '../../src/testing/index.js';
import { testDatabases } from '../database/test-databases.js';
import { kinds, openWorld, quickKinds, untilEnded } from './world.js';
import { until } from '../../src/testing/until.js';

const secrets = /482913|s3cret-of-the-provider/;

describe('secrets', () => {
  it('N36: stay out of everything that people read', async () => {
    const database = await testDatabases().at(-1)!.open();
    const lines: string[] = [];
    const write = (fields: object, message: string): void => {
      const { error } = fields as { error?: Error };
      lines.push(`${JSON.stringify(fields)} ${message} ${error?.message ?? ''} ${error?.stack ?? ''}`);
    };
    const log: Log = { debug: write, info: write, warn: write, error: write };
    const faults: Fault[] = [
      { kind: 'answer', status: 500, body: 'your message 482913' },
      { kind: 'answer', status: 422, body: '{"name":"x","message":"482913"}' },
      { kind: 'cut' },
    ];
    const http = await startHttpCounterpart({ faults: faultList(faults, { repeat: true }) });
    const smtp = await startSmtpCounterpart();
    smtp.script([{ at: 'body', does: { reply: '550 5.7.1 482913 is spam' } }], { repeat: true });
    const smpp = await startSmppCounterpart({ password: 'other' });
    const key = 's3cret-of-the-provider';
    const providers: Provider[] = [
      createResendProvider({ apiKey: key, from: 'a@example.test', url: http.url, timeoutMs: 300 }),
      createSmtpProvider({
        name: 'smtp',
        host: '127.0.0.1',
        port: smtp.port,
        requireTls: false,
        from: 'a@example.test',
        auth: { user: 'u', pass: key },
      }),
      createSmppProvider({ host: '127.0.0.1', port: smpp.port, systemId: 'us', password: key, from: 'Us' }),
    ];
    const otp = {
      ...quickKinds.otp,
      deadline: '2s' as const,
      templates: { ...kinds.otp.templates, email: { subject: '{{ code }}', text: '{{ code }}' } },
    };
    const world = await openWorld({
      database,
      providers,
      kinds: { ...quickKinds, otp } as never,
      log,
    });
    const worker = world.notify.worker();
    await worker.start();
    const errors: string[] = [];
    const send = (request: object) =>
      world.notify
        .send('otp', { user: 'u', data: { code: '482913' }, ...request } as never)
        .catch((error: Error) => {
          errors.push(`${error.message} ${error.stack} ${JSON.stringify(error)}`);
          return undefined;
        });
    const ids: string[] = [];
    for (let index = 0; index < 4; index += 1) {
      const to = [
        { channel: 'email', address: `a${index}@example.test` },
        { channel: 'sms', address: `+4179123456${index}` },
      ];
      const outcome = await send({ key: `k${index}`, to });
      ids.push(...(outcome?.deliveries ?? []).map(({ id }) => id));
    }
    await send({ key: 'conflict', to: [{ channel: 'sms', address: '+41790000000' }] });
    await send({
      key: 'conflict',
      data: { code: '111111' },
      to: [{ channel: 'sms', address: '+41790000000' }],
    });
    await send({ key: 'k', data: { wrong: '482913' }, to: [{ channel: 'sms', address: '+41790000000' }] });
    await send({ key: 'k', to: [{ channel: 'sms', address: '482913' }] });
    await untilEnded(world.notify, ids);
    await until(() => lines.length > 0);
    const shown = await Promise.all(ids.map(async (id) => JSON.stringify(await world.notify.delivery(id))));
    const { rows } = await database.query<{ line: string }>(
      `select h::text as line from ${world.schema}.history h`,
    );
    const all = [...lines, ...shown, ...rows.map(({ line }) => line)];
    expect(all.filter((line) => secrets.test(line))).toEqual([]);
    // An address that is refused is named; a code is in no other error.
    expect(errors.filter((line) => secrets.test(line) && !line.includes('to[0].address'))).toEqual([]);
    await worker.stop();
    await world.stop();
    await database.close();
    await http.stop();
    await smtp.stop();
    await smpp.stop();
  });

  it('the door loads no third-party module before a driver is needed', () => {
    const seen = new Set<string>();
    const foreign: string[] = [];
    const walk = (file: string): void => {
      if (seen.has(file)) return;
      seen.add(file);
      // Static imports only; `import type` is gone at run time, and a driver is loaded by import().
      const text = readFileSync(file, 'utf8').replaceAll(/^(import|export) type [^;]+;/gms, '');
      for (const [, specifier = ''] of text.matchAll(/^(?:import|export)[^;]*?from '([^']+)'/gms)) {
        if (specifier.startsWith('.')) walk(join(dirname(file), specifier.replace(/\.js$/, '.ts')));
        else if (!specifier.startsWith('node:')) foreign.push(`${file}: ${specifier}`);
      }
    };
    walk(fileURLToPath(new URL('../../src/notify/index.ts', import.meta.url)));
    expect(seen.size).toBeGreaterThan(30);
    expect(foreign).toEqual([]);
  });
});
