/**
 * One bound SMPP session. The library has no response timer and forgets to answer when the socket closes, so what is
 * pending is kept here: every request ends by its signal, by its response, or by the end of the session.
 */
import type { Pdu, Session } from 'smpp';
import { groundError } from '../../errors.js';

export interface SmppConnectOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  readonly systemId: string;
  readonly password: string;
  readonly systemType: string;
  readonly enquireMs: number;
  /** Messages that the SMSC delivers on its own; answered when this resolves. */
  readonly onDeliver: (pdu: Pdu) => Promise<void>;
}

export type Reply =
  | { readonly kind: 'reply'; readonly pdu: Pdu }
  /** The request was not written. */
  | { readonly kind: 'not-written'; readonly reason: string }
  | { readonly kind: 'no-reply'; readonly reason: 'timeout' | 'closed' };

type PduClass = Awaited<ReturnType<typeof loadSmpp>>['PDU'];

interface Pending {
  readonly end: (reply: Reply) => void;
}

export async function loadSmpp() {
  try {
    const library = await import('smpp');
    // CommonJS: named exports are found only in part.
    return ((library as unknown as { default?: typeof library }).default ?? library) as typeof library;
  } catch (cause) {
    throw groundError('driver-missing', 'SMPP needs smpp: npm install smpp', { cause });
  }
}

export class SmppSession {
  readonly #session: Session;
  readonly #PDU: PduClass;
  readonly #pending = new Map<number, Pending>();
  readonly #options: SmppConnectOptions;
  #enquire: NodeJS.Timeout | undefined;
  #sequence = 0;
  #closed = false;
  #heard = 0;

  private constructor(session: Session, pdu: PduClass, options: SmppConnectOptions) {
    this.#session = session;
    this.#PDU = pdu;
    this.#options = options;
    session.on('pdu', (received: Pdu) => void this.#received(received));
    session.on('close', () => this.#gone());
    session.on('error', () => this.destroy());
  }

  /** Connects and binds as a transceiver; rejects with a reason when either fails or the signal fires. */
  static async bind(
    options: SmppConnectOptions,
    signal: AbortSignal,
  ): Promise<SmppSession | { status: number }> {
    const { connect, PDU } = await loadSmpp();
    const { host, port, tls } = options;
    const raw = connect({ host, port, tls });
    const session = new SmppSession(raw, PDU, options);
    try {
      await session.#connected(tls, signal);
      const reply = await session.request(
        'bind_transceiver',
        {
          system_id: options.systemId,
          password: options.password,
          system_type: options.systemType,
          interface_version: 0x34,
        },
        signal,
      );
      if (reply.kind !== 'reply') throw new Error(reply.reason);
      if (reply.pdu.command_status !== 0) {
        session.destroy();
        return { status: reply.pdu.command_status };
      }
    } catch (error) {
      session.destroy();
      throw error;
    }
    session.#keepAlive();
    return session;
  }

  get open(): boolean {
    return !this.#closed;
  }

  /** Requests without an answer yet. */
  get pending(): number {
    return this.#pending.size;
  }

  request(command: string, fields: Record<string, unknown>, signal: AbortSignal): Promise<Reply> {
    if (this.#closed) return Promise.resolve({ kind: 'not-written', reason: 'closed' });
    if (signal.aborted) return Promise.resolve({ kind: 'not-written', reason: 'no time left' });
    return new Promise((resolve) => {
      const pdu = new this.#PDU(command, fields);
      this.#sequence = (this.#sequence % 0x7fff_fffe) + 1;
      const sequence = this.#sequence;
      const heard = this.#heard;
      pdu.sequence_number = sequence;
      const abort = (): void => {
        end({ kind: 'no-reply', reason: 'timeout' });
        // Nothing at all came back since: the session is dead, and a new one is bound for the next message.
        if (this.#heard === heard) this.destroy();
      };
      const end = (reply: Reply): void => {
        this.#pending.delete(sequence);
        signal.removeEventListener('abort', abort);
        resolve(reply);
      };
      this.#pending.set(sequence, { end });
      signal.addEventListener('abort', abort, { once: true });
      if (!this.#session.send(pdu)) end({ kind: 'not-written', reason: 'closed' });
    });
  }

  destroy(): void {
    this.#session.destroy();
    this.#gone();
  }

  #connected(tls: boolean, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const abort = (): void => reject(new Error('timeout'));
      if (signal.aborted) return abort();
      signal.addEventListener('abort', abort, { once: true });
      this.#session.once(tls ? 'secureConnect' : 'connect', resolve);
      this.#session.once('error', (error: NodeJS.ErrnoException) => reject(new Error(error.code ?? 'error')));
      this.#session.once('close', () => reject(new Error('closed')));
    });
  }

  async #received(pdu: Pdu): Promise<void> {
    this.#heard += 1;
    if (pdu.isResponse()) {
      this.#pending.get(pdu.sequence_number)?.end({ kind: 'reply', pdu });
      return;
    }
    // Answered when it is written down: an SMSC that hears nothing delivers it again.
    if (pdu.command === 'deliver_sm') await this.#options.onDeliver(pdu);
    if (!this.#closed) this.#session.send(pdu.response());
    if (pdu.command === 'unbind') this.destroy();
  }

  #keepAlive(): void {
    this.#enquire = setInterval(() => {
      void this.request('enquire_link', {}, AbortSignal.timeout(this.#options.enquireMs / 2));
    }, this.#options.enquireMs);
    this.#enquire.unref();
  }

  #gone(): void {
    this.#closed = true;
    clearInterval(this.#enquire);
    for (const { end } of this.#pending.values()) end({ kind: 'no-reply', reason: 'closed' });
  }
}
