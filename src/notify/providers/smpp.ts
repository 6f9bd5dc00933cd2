/**
 * Text messages over SMPP 3.4, on one bound session a process. A message of several segments is one submit_sm with its
 * text in message_payload: one attempt, one request, one answer. Receipts come over the same session.
 */
import type { Pdu } from 'smpp';
import type { AttemptOutcome, AttemptRequest, Provider, ProviderHooks } from '../provider.js';
import { encodeSms } from '../sms-text.js';
import { convertMessageId, readSmppReceipt } from './smpp-receipt.js';
import { loadSmpp, SmppSession } from './smpp-session.js';

export interface SmppOptions {
  /** Default: smpp. */
  readonly name?: string;
  readonly host: string;
  /** Default: 2775, with TLS 3550. */
  readonly port?: number;
  readonly tls?: boolean;
  readonly systemId: string;
  readonly password: string;
  readonly systemType?: string;
  /** Sender: a number in international form, a short code, or up to 11 letters. */
  readonly from: string;
  /** Total time of one attempt. Default: 10,000 ms. */
  readonly timeoutMs?: number;
  /** How often a quiet session is asked whether it lives. Default: 30,000 ms. */
  readonly enquireMs?: number;
  /** How the SMSC writes ids in receipts, against its answers. Default: as-is. */
  readonly receiptIds?: 'as-is' | 'hex-to-decimal' | 'decimal-to-hex';
  readonly rate?: Provider['rate'];
  /** Overrides by status name (`ESME_RSYSERR`) or number. */
  readonly verdicts?: Readonly<Record<string, SmppVerdict>>;
}

export type SmppVerdict = 'not-accepted' | 'refused' | 'ambiguous' | 'configuration';

const verdictsDefault: Readonly<Record<string, SmppVerdict>> = {
  ESME_RTHROTTLED: 'not-accepted',
  ESME_RMSGQFUL: 'not-accepted',
  ESME_RSUBMITFAIL: 'not-accepted',
  ESME_RQUERYFAIL: 'not-accepted',
  ESME_RDELIVERYFAILURE: 'not-accepted',
  ESME_RUNKNOWNERR: 'not-accepted',
  ESME_RX_T_APPN: 'not-accepted',
  // Temporary in one vendor's list; but an error of the system may come after the message was taken.
  ESME_RSYSERR: 'ambiguous',
  ESME_RINVDSTADR: 'refused',
  ESME_RINVSRCADR: 'refused',
  ESME_RX_P_APPN: 'refused',
  ESME_RX_R_APPN: 'refused',
  ESME_RINVMSGLEN: 'refused',
  ESME_RINVEXPIRY: 'refused',
  ESME_RINVDCS: 'refused',
  ESME_RINVBNDSTS: 'not-accepted',
};

/** Failures of the bind that will not pass by themselves. */
const bindConfiguration = new Set(['ESME_RBINDFAIL', 'ESME_RINVPASWD', 'ESME_RINVSYSID']);
/** A reason to wait for longer than the next attempt. */
const throttledMs = 1_000;

export interface SmppProvider extends Provider {
  /** What the adapter holds this moment. */
  state(): { readonly bound: boolean; readonly pending: number };
}

export function createSmppProvider(options: SmppOptions): SmppProvider {
  const {
    name = 'smpp',
    tls = false,
    timeoutMs = 10_000,
    enquireMs = 30_000,
    receiptIds = 'as-is',
    rate,
  } = options;
  let session: SmppSession | undefined;
  let binding: Promise<SmppSession | { status: number }> | undefined;
  let hooks: ProviderHooks | undefined;
  let rebind: NodeJS.Timeout | undefined;

  const onDeliver = async (pdu: Pdu): Promise<void> => {
    const receipt = readSmppReceipt(pdu);
    if (receipt === undefined) return;
    const messageId = convertMessageId(receipt.messageId as string, receiptIds);
    await hooks?.receive({ ...receipt, messageId });
  };

  /** All attempts that find no session wait for the same bind. */
  const bind = async (signal: AbortSignal): Promise<SmppSession | { status: number }> => {
    if (session?.open) return session;
    binding ??= SmppSession.bind(
      {
        host: options.host,
        port: options.port ?? (tls ? 3550 : 2775),
        tls,
        systemId: options.systemId,
        password: options.password,
        systemType: options.systemType ?? '',
        enquireMs,
        onDeliver,
      },
      AbortSignal.timeout(timeoutMs),
    ).finally(() => (binding = undefined));
    const bound = await raceAbort(binding, signal);
    if (bound instanceof SmppSession) session = bound;
    return bound;
  };

  return {
    name,
    channel: 'sms',
    timeoutMs,
    rate,
    state: () => ({ bound: session?.open ?? false, pending: session?.pending ?? 0 }),
    async attempt(request, { signal }): Promise<AttemptOutcome> {
      let bound: SmppSession | { status: number };
      try {
        bound = await bind(signal);
      } catch (error) {
        if ((error as { code?: string }).code === 'driver-missing') throw error;
        return {
          kind: 'not-accepted',
          detail: `smpp not bound: ${(error as Error).message}`,
          unanswered: true,
        };
      }
      const names = await statusNames();
      if (!(bound instanceof SmppSession)) {
        const status = names.get(bound.status) ?? String(bound.status);
        return {
          kind: 'not-accepted',
          detail: `smpp bind ${status}`,
          configuration: bindConfiguration.has(status),
        };
      }
      const reply = await bound.request('submit_sm', submitFields(request, options.from), signal);
      if (reply.kind === 'not-written') return { kind: 'not-accepted', detail: `smpp ${reply.reason}` };
      if (reply.kind === 'no-reply')
        return { kind: 'ambiguous', detail: `smpp ${reply.reason}`, unanswered: true };
      return outcomeOf(reply.pdu, names, options.verdicts);
    },
    async start(given) {
      hooks = given;
      // Receipts come over the session, so it is kept bound whether or not there is something to send.
      const keepBound = (): void => {
        if (session?.open) return;
        bind(AbortSignal.timeout(timeoutMs)).catch((error: unknown) =>
          given.log.warn({ provider: name, error }, 'the SMSC could not be bound; trying again'),
        );
      };
      keepBound();
      rebind = setInterval(keepBound, enquireMs);
      rebind.unref();
    },
    async stop() {
      clearInterval(rebind);
      await binding?.catch(() => {});
      session?.destroy();
      session = undefined;
    },
  };
}

function submitFields({ destination, content, reference, timeLeftMs }: AttemptRequest, from: string) {
  const { encoding, segments, bytes } = encodeSms(String(content['text']));
  const isNumber = /^\+?\d+$/.test(from);
  return {
    source_addr_ton: isNumber ? (from.startsWith('+') ? 1 : 3) : 5,
    source_addr_npi: isNumber ? 1 : 0,
    source_addr: from.replace(/^\+/, ''),
    dest_addr_ton: 1,
    dest_addr_npi: 1,
    destination_addr: destination.address.replace(/^\+/, ''),
    registered_delivery: 1,
    data_coding: encoding === 'gsm7' ? 0 : 8,
    validity_period: validityPeriod(timeLeftMs),
    user_message_reference: shortReference(reference),
    ...(segments === 1 ? { short_message: bytes } : { short_message: '', message_payload: bytes }),
  };
}

/** Relative time: what is left of the deadline, rounded up to seconds, at most 99 days. */
export function validityPeriod(timeLeftMs: number): string {
  const seconds = Math.min(99 * 86_400 - 1, Math.max(1, Math.ceil(timeLeftMs / 1_000)));
  const two = (value: number): string => String(value).padStart(2, '0');
  const days = Math.floor(seconds / 86_400);
  return `0000${two(days)}${two(Math.floor(seconds / 3_600) % 24)}${two(Math.floor(seconds / 60) % 60)}${two(seconds % 60)}000R`;
}

/** Sixteen bits of our reference, for people who compare logs. */
function shortReference(reference: string): number {
  let hash = 0;
  for (const character of reference) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) & 0xffff;
  return hash;
}

let names: Map<number, string> | undefined;
async function statusNames(): Promise<Map<number, string>> {
  names ??= new Map(Object.entries((await loadSmpp()).errors).map(([status, number]) => [number, status]));
  return names;
}

function outcomeOf(
  pdu: Pdu,
  known: Map<number, string>,
  verdicts: SmppOptions['verdicts'] = {},
): AttemptOutcome {
  const { command_status: number, message_id: messageId } = pdu;
  if (number === 0) {
    if (!messageId) return { kind: 'ambiguous', detail: 'smpp accepted without an id' };
    return { kind: 'sent', messageId, detail: 'smpp ESME_ROK' };
  }
  const status = known.get(number) ?? `0x${number.toString(16)}`;
  const detail = `smpp ${status}`;
  switch (verdicts[status] ?? verdicts[String(number)] ?? verdictsDefault[status] ?? 'refused') {
    case 'not-accepted':
      return {
        kind: 'not-accepted',
        detail,
        ...(status === 'ESME_RTHROTTLED' && { retryAfterMs: throttledMs }),
      };
    case 'ambiguous':
      return { kind: 'ambiguous', detail };
    case 'configuration':
      return { kind: 'refused', detail, configuration: true };
    case 'refused':
      return { kind: 'refused', detail };
  }
}

function raceAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(new Error('timeout'));
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
