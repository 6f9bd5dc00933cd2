/** What is used of node-smpp, which has no types of its own. */
declare module 'smpp' {
  import type { EventEmitter } from 'node:events';
  import type { Server as NetServer, Socket } from 'node:net';

  export interface Pdu {
    readonly command: string;
    readonly command_status: number;
    sequence_number: number;
    readonly message_id?: string;
    readonly short_message?: { readonly message?: string | Buffer; readonly udh?: unknown };
    readonly message_payload?: { readonly message?: string | Buffer } | string | Buffer;
    readonly receipted_message_id?: string;
    readonly message_state?: number;
    readonly user_message_reference?: number;
    readonly esm_class?: number;
    readonly source_addr?: string;
    readonly destination_addr?: string;
    readonly validity_period?: unknown;
    readonly data_coding?: number;
    readonly system_id?: string;
    readonly password?: string;
    isResponse(): boolean;
    response(fields?: Record<string, unknown>): Pdu;
  }
  export const PDU: new (command: string, fields?: Record<string, unknown>) => Pdu;
  export interface Session extends EventEmitter {
    readonly socket: Socket;
    send(pdu: Pdu): boolean;
    close(): void;
    destroy(): void;
  }
  export interface Server extends NetServer {
    readonly sessions: Session[];
  }
  export function connect(
    options: { host: string; port: number; tls?: boolean } & Record<string, unknown>,
  ): Session;
  export function createServer(listener: (session: Session) => void): Server;
  /** Status by name. */
  export const errors: Readonly<Record<string, number>>;
}
