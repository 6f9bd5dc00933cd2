/**
 * An SMSC on loopback: binds anybody, takes messages, sends receipts on demand, and misbehaves by its script. The faults
 * concern submit_sm; `answer` gives a command_status.
 */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createRequire } from 'node:module';
import type * as Smpp from 'smpp';
import { accepts, faultList, type FaultScript } from './provider-faults.js';

export interface SubmittedMessage {
  readonly id: string;
  readonly to: string;
  readonly from: string;
  readonly text: string;
  /** Relative time as it was on the wire. */
  readonly validityPeriod: string;
  readonly dataCoding: number;
  readonly taken: boolean;
  readonly atMs: number;
}

export interface SmppCounterpart {
  readonly port: number;
  readonly messages: readonly SubmittedMessage[];
  sessions(): { readonly total: number; readonly open: number };
  /** Sends a receipt on every open session. */
  receipt(
    messageId: string,
    state: 'ENROUTE' | 'DELIVRD' | 'UNDELIV' | 'EXPIRED' | 'ACCEPTD' | 'REJECTD',
  ): void;
  script(faults: FaultScript): void;
  stop(): Promise<void>;
}

const library = (): typeof Smpp => createRequire(import.meta.url)('smpp') as typeof Smpp;

export async function startSmppCounterpart(
  options: { readonly password?: string } = {},
): Promise<SmppCounterpart> {
  const { createServer, PDU, errors } = library();
  const messages: SubmittedMessage[] = [];
  const open = new Set<Smpp.Session>();
  let faults: FaultScript = faultList([]);
  let total = 0;

  const server = createServer((session) => {
    total += 1;
    open.add(session);
    session.on('error', () => {});
    session.on('close', () => open.delete(session));
    session.on('bind_transceiver', (pdu: Smpp.Pdu) => {
      const refused = options.password !== undefined && pdu.password !== options.password;
      session.send(
        pdu.response({ command_status: refused ? errors['ESME_RINVPASWD'] : 0, system_id: 'counterpart' }),
      );
    });
    session.on('enquire_link', (pdu: Smpp.Pdu) => session.send(pdu.response()));
    session.on('submit_sm', (pdu: Smpp.Pdu) => {
      const fault = faults.next();
      const message = messageOf(pdu, String(messages.length + 1), accepts(fault));
      messages.push(message);
      const reply = (status = 0): void =>
        void session.send(
          pdu.response({ command_status: status, message_id: status === 0 ? message.id : '' }),
        );
      if (fault.kind === 'none') reply();
      else if (fault.kind === 'late') setTimeout(reply, fault.delayMs);
      else if (fault.kind === 'answer') reply(fault.status);
      else if (fault.kind === 'cut') session.destroy();
      else if (fault.kind === 'drip') drip(session);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    port: (server.address() as AddressInfo).port,
    messages,
    sessions: () => ({ total, open: open.size }),
    receipt(messageId, state) {
      const text = `id:${messageId} sub:001 dlvrd:001 submit date:2601010000 done date:2601010001 stat:${state} err:000 text:`;
      for (const session of open) {
        session.send(new PDU('deliver_sm', { esm_class: 4, short_message: Buffer.from(text) }));
      }
    },
    script(next) {
      faults = next;
    },
    async stop() {
      const closed = once(server, 'close');
      server.close();
      for (const session of open) session.destroy();
      await closed;
    },
  };
}

function messageOf(pdu: Smpp.Pdu, id: string, taken: boolean): SubmittedMessage {
  const payload = pdu.message_payload as { message?: string | Buffer } | string | Buffer | undefined;
  const long = typeof payload === 'object' && 'message' in payload ? payload.message : payload;
  return {
    id,
    to: pdu.destination_addr ?? '',
    from: pdu.source_addr ?? '',
    text: String(pdu.short_message?.message || long || ''),
    validityPeriod: secondsOf(pdu.validity_period),
    dataCoding: pdu.data_coding ?? 0,
    taken,
    atMs: performance.now(),
  };
}

/** The library turns relative times into dates; seconds from now say as much. */
function secondsOf(period: unknown): string {
  return period instanceof Date
    ? String(Math.round((period.getTime() - Date.now()) / 1_000))
    : String(period ?? '');
}

function drip(session: Smpp.Session): void {
  const timer = setInterval(() => session.socket.write(Buffer.from([0])), 1_000);
  session.on('close', () => clearInterval(timer));
}
