/**
 * E-mail over SMTP. What is known is read off the conversation itself: until the server has answered 354 nothing was
 * sent; between that and its last answer nobody knows. The library's error codes cannot tell the two apart. Message-ID,
 * date and boundaries are made of the delivery, so that every attempt sends the same bytes.
 */
import type SMTPConnection from 'nodemailer/lib/smtp-connection';
import { groundError } from '../../errors.js';
import type { AttemptOutcome, AttemptRequest, Provider } from '../provider.js';

export interface SmtpOptions {
  /** Default: smtp. */
  readonly name?: string;
  readonly host: string;
  /** Default: 465 with `secure`, else 587. */
  readonly port?: number;
  /** TLS from the first byte. Default: false, STARTTLS where offered. */
  readonly secure?: boolean;
  /** Refuses to go on without TLS. Default: true; false only for a server on the same machine. */
  readonly requireTls?: boolean;
  readonly auth?: { readonly user: string; readonly pass: string };
  /** `address` or `Name <address>`. */
  readonly from: string;
  /** Right side of the Message-ID. Default: that of `from`. */
  readonly domain?: string;
  /** Total time of one attempt. Default: 30,000 ms. */
  readonly timeoutMs?: number;
  /** Idle connections kept for the next message, and for how long. Default: 5 for 10 s; 0: none. */
  readonly pool?: { readonly connectionsMax?: number; readonly idleMs?: number };
  readonly rate?: Provider['rate'];
  readonly tls?: { readonly ca?: string; readonly servername?: string };
  /** Overrides by reply code (`550`) or enhanced code (`5.1.1`). */
  readonly verdicts?: Readonly<Record<string, 'not-accepted' | 'refused' | 'ambiguous' | 'retire'>>;
}

interface Line {
  readonly connection: SMTPConnection;
  /** The server has asked for the message of the present attempt. */
  dataStarted: boolean;
  idle: NodeJS.Timeout | undefined;
}

/** Mailboxes that do not exist. Space, size and policy (5.2.2, 5.3.4, 5.7.x) say nothing about the address. */
const noSuchMailbox = new Set(['5.1.1', '5.1.10', '5.1.6']);

export function createSmtpProvider(options: SmtpOptions): Provider {
  const { name = 'smtp', timeoutMs = 30_000, rate } = options;
  const { connectionsMax = 5, idleMs = 10_000 } = options.pool ?? {};
  const domain = options.domain ?? (/@([^>\s]+)/.exec(options.from)?.[1] || 'localhost');
  const idle: Line[] = [];

  const close = (line: Line): void => {
    clearTimeout(line.idle);
    const index = idle.indexOf(line);
    if (index >= 0) idle.splice(index, 1);
    line.connection.close();
  };

  const keep = (line: Line): void => {
    if (idle.length >= connectionsMax) return close(line);
    line.idle = setTimeout(() => close(line), idleMs);
    line.idle.unref();
    idle.push(line);
  };

  const open = async (signal: AbortSignal): Promise<Line> => {
    const kept = idle.pop();
    if (kept !== undefined) {
      clearTimeout(kept.idle);
      kept.dataStarted = false;
      return kept;
    }
    return connect(options, signal, close);
  };

  return {
    name,
    channel: 'email',
    timeoutMs,
    rate,
    async attempt(request, { signal }) {
      const { composed, envelope } = await compose(request, { from: options.from, domain });
      let line: Line | undefined;
      try {
        line = await open(signal);
        await sendOver(line, envelope, composed, signal);
        keep(line);
        return { kind: 'sent', detail: 'smtp 250' };
      } catch (error) {
        const phase = line?.dataStarted ? 'data' : 'before';
        if (line !== undefined) close(line);
        return outcomeOf(error, phase, options.verdicts);
      }
    },
    async stop() {
      for (const line of idle.splice(0)) close(line);
    },
  };
}

async function loadLibrary() {
  try {
    const [connection, composer] = await Promise.all([
      import('nodemailer/lib/smtp-connection'),
      import('nodemailer/lib/mail-composer'),
    ]);
    return { SMTPConnection: connection.default, MailComposer: composer.default };
  } catch (cause) {
    throw groundError('driver-missing', 'SMTP needs nodemailer: npm install nodemailer', { cause });
  }
}

async function compose(
  { reference, destination, content, createdAt }: AttemptRequest,
  { from, domain }: { from: string; domain: string },
) {
  const { MailComposer } = await loadLibrary();
  const text = (slot: string): string | undefined => content[slot] as string | undefined;
  const unsubscribe = text('unsubscribeUrl');
  const message = new MailComposer({
    from,
    to: destination.address,
    subject: text('subject'),
    text: text('text'),
    html: text('html'),
    messageId: `<${reference}@${domain}>`,
    date: new Date(createdAt),
    baseBoundary: reference,
    disableFileAccess: true,
    disableUrlAccess: true,
    headers: {
      'X-Headgate-Reference': reference,
      ...(unsubscribe !== undefined && {
        'List-Unsubscribe': `<${unsubscribe}>`,
        'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
      }),
    },
  }).compile();
  return { composed: await message.build(), envelope: message.getEnvelope() };
}

/** Connected, greeted and authenticated; whatever fails here, nothing was sent. */
async function connect(
  options: SmtpOptions,
  signal: AbortSignal,
  close: (line: Line) => void,
): Promise<Line> {
  const { SMTPConnection } = await loadLibrary();
  const { host, secure = false, requireTls = true, auth, tls } = options;
  let line: Line | undefined;
  const connection = new SMTPConnection({
    host,
    port: options.port ?? (secure ? 465 : 587),
    secure,
    requireTLS: requireTls && !secure,
    ...(tls && { tls }),
    // The total limit is the signal; these only keep the library from ending sooner or never.
    connectionTimeout: 120_000,
    greetingTimeout: 120_000,
    socketTimeout: 120_000,
    socketCloseTimeout: 0,
    transactionLog: true,
    logger: phaseLogger(() => {
      if (line !== undefined) line.dataStarted = true;
    }),
  });
  const made: Line = { connection, dataStarted: false, idle: undefined };
  line = made;
  connection.on('end', () => close(made));
  // An error between two steps has nobody to go to; the end follows it.
  connection.on('error', () => {});
  await endedBy(signal, connection, (done) => connection.connect((error) => done(error)));
  if (auth) {
    await endedBy(signal, connection, (done) =>
      connection.login({ user: auth.user, credentials: auth }, (error) => done(error)),
    );
  }
  return made;
}

/** Tells when the server has answered 354. Everything else is dropped: commands may hold credentials. */
function phaseLogger(onDataStarted: () => void): never {
  const look = (entry: { tnx?: string }, text?: unknown): void => {
    if (
      entry?.tnx === 'server' &&
      typeof text === 'string' &&
      /^[23]\d\d/.test(text) &&
      text.startsWith('354')
    ) {
      onDataStarted();
    }
  };
  const nothing = (): void => {};
  return {
    level: nothing,
    trace: nothing,
    debug: look,
    info: nothing,
    warn: nothing,
    error: nothing,
    fatal: nothing,
  } as never;
}

type Envelope = Parameters<SMTPConnection['send']>[0];

function sendOver(line: Line, envelope: Envelope, message: Buffer, signal: AbortSignal): Promise<void> {
  return endedBy(signal, line.connection, (done) =>
    line.connection.send(envelope, message, (error) => done(error)),
  );
}

/** Runs one step of the conversation; ended by the signal, an error, or the other side going away. */
function endedBy(
  signal: AbortSignal,
  connection: SMTPConnection,
  step: (done: (error?: unknown) => void) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (error?: unknown): void => {
      signal.removeEventListener('abort', abort);
      connection.removeListener('error', end);
      connection.removeListener('end', gone);
      if (error) reject(error instanceof Error ? error : new Error('smtp'));
      else resolve();
    };
    const abort = (): void => {
      end(Object.assign(new Error('out of time'), { code: 'timeout' }));
      connection.close();
    };
    const gone = (): void => end(Object.assign(new Error('closed'), { code: 'closed' }));
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort, { once: true });
    connection.on('error', end);
    connection.on('end', gone);
    step(end);
  });
}

function outcomeOf(
  thrown: unknown,
  phase: 'before' | 'data',
  verdicts: SmtpOptions['verdicts'] = {},
): AttemptOutcome {
  const error = thrown as { code?: string; responseCode?: number; response?: string; command?: string };
  if (thrown instanceof Error && error.code === 'driver-missing') throw thrown;
  const { responseCode: reply } = error;
  if (reply === undefined || reply < 400) {
    const detail = `smtp ${phase === 'data' ? 'no answer after the message' : 'no conversation'}: ${error.code ?? 'error'}`;
    return phase === 'data'
      ? { kind: 'ambiguous', detail, unanswered: true }
      : { kind: 'not-accepted', detail, unanswered: true };
  }
  const enhanced = /^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})/.exec(error.response ?? '')?.[1];
  const detail = `smtp ${reply}${enhanced === undefined ? '' : ` ${enhanced}`}`;
  if (error.code === 'EAUTH') return { kind: 'not-accepted', detail, configuration: true };
  const verdict = (enhanced === undefined ? undefined : verdicts[enhanced]) ?? verdicts[String(reply)];
  if (verdict === 'ambiguous') return { kind: 'ambiguous', detail };
  if (verdict === 'not-accepted' || (verdict === undefined && reply < 500))
    return { kind: 'not-accepted', detail };
  const retires =
    verdict === 'retire' || (verdict === undefined && enhanced !== undefined && noSuchMailbox.has(enhanced));
  return { kind: 'refused', detail, ...(retires && { retire: { reason: detail } }) };
}
