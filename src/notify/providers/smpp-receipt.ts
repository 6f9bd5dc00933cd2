/** Reads delivery receipts of SMPP: from the parameters where the SMSC sends them, else from the customary text. */
import type { Pdu } from 'smpp';
import type { Receipt } from '../provider.js';

const receiptClass = 0x04;
const stateByNumber: readonly (string | undefined)[] = [
  undefined,
  'ENROUTE',
  'DELIVRD',
  'EXPIRED',
  'DELETED',
  'UNDELIV',
  'ACCEPTD',
  'UNKNOWN',
  'REJECTD',
];
const statusOf: Readonly<Record<string, Receipt['status']>> = {
  ENROUTE: 'queued',
  ACCEPTD: 'sent',
  DELIVRD: 'delivered',
  EXPIRED: 'undelivered',
  DELETED: 'undelivered',
  UNDELIV: 'undelivered',
  REJECTD: 'undelivered',
};

/** Undefined for a deliver_sm that is no receipt, or one whose state says nothing (UNKNOWN). */
export function readSmppReceipt(pdu: Pdu): Receipt | undefined {
  if (((pdu.esm_class ?? 0) & 0x3c) !== receiptClass) return undefined;
  const text = textOf(pdu);
  const messageId = pdu.receipted_message_id?.replace(/\0+$/, '') || /\bid:(\S+)/i.exec(text)?.[1];
  const state =
    stateByNumber[pdu.message_state ?? 0] ?? /\bstat:([A-Z]{3,8})/i.exec(text)?.[1]?.toUpperCase();
  const status = state === undefined ? undefined : statusOf[state];
  if (messageId === undefined || status === undefined) return undefined;
  const error = /\berr:(\w{1,8})/i.exec(text)?.[1];
  return { messageId, status, detail: `smpp ${state}${error === undefined ? '' : ` err ${error}`}` };
}

function textOf({ short_message: short, message_payload: payload }: Pdu): string {
  const message =
    short?.message || (typeof payload === 'object' && 'message' in payload ? payload.message : payload);
  return Buffer.isBuffer(message) ? message.toString('latin1') : String(message ?? '');
}

/** The same id is written in decimal by one side and in hexadecimal by the other at some vendors. */
export function convertMessageId(id: string, form: 'as-is' | 'hex-to-decimal' | 'decimal-to-hex'): string {
  if (form === 'hex-to-decimal' && /^[0-9a-f]+$/i.test(id)) return BigInt(`0x${id}`).toString();
  if (form === 'decimal-to-hex' && /^\d+$/.test(id)) return BigInt(id).toString(16);
  return id;
}
