/**
 * A TCP proxy that misbehaves on demand: between a client and a server it can cut connections, hold bytes back, or go
 * half-open (take bytes, give none, never close), as a broken network does.
 */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

export interface ProxyOptions {
  /** Where connections are passed on to. */
  target: { host: string; port: number };
}

interface Link {
  readonly client: Socket;
  readonly server: Socket;
  halfOpen: boolean;
  /** What the client sent in the beginning, as text; to find the connection that a test means. */
  sent: string;
}

const sentCharactersMax = 64 * 1024;

export class Proxy {
  readonly #server: Server;
  readonly #links = new Set<Link>();
  readonly #serverSockets = new Set<Socket>();
  readonly #target: ProxyOptions['target'];
  #replyDelayMs = 0;
  #refusing = false;
  #halfOpenNew = false;
  #accepted = 0;
  #refused = 0;

  private constructor({ target }: ProxyOptions) {
    this.#target = target;
    this.#server = createServer({ allowHalfOpen: true }, (client) => this.#accept(client));
  }

  static async start(options: ProxyOptions): Promise<Proxy> {
    const proxy = new Proxy(options);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the proxy is stopped');
    return address.port;
  }

  /** The URL of a server with the proxy in its place. */
  urlOf(url: string): string {
    const changed = new URL(url);
    changed.hostname = '127.0.0.1';
    changed.port = String(this.port);
    return changed.href;
  }

  /** Connections that are open now. */
  get connections(): number {
    return this.#links.size;
  }

  /** Connections that were ever accepted. */
  get accepted(): number {
    return this.#accepted;
  }

  /** Connections that were refused. */
  get refused(): number {
    return this.#refused;
  }

  /** Holds every reply back for so long; 0 ends it. */
  delayReplies(ms: number): void {
    this.#replyDelayMs = ms;
  }

  /** Refuses new connections by cutting them at once, until called with false. */
  refuse(refusing: boolean): void {
    this.#refusing = refusing;
  }

  /** Cuts the open connections, or those whose client has sent `text`. Answers how many. */
  cut({ sent = '' }: { sent?: string } = {}): number {
    const links = this.#find(sent);
    for (const link of links) {
      link.client.resetAndDestroy();
      link.server.destroy();
    }
    return links.length;
  }

  /**
   * Makes the open connections, or those whose client has sent `text`, silent: bytes go in, none come out, nothing is
   * closed. Answers how many. With `alsoNew` connections that come later are silent too, until `heal`.
   */
  goHalfOpen({ sent = '', alsoNew = false }: { sent?: string; alsoNew?: boolean } = {}): number {
    const links = this.#find(sent);
    for (const link of links) link.halfOpen = true;
    this.#halfOpenNew = alsoNew;
    return links.length;
  }

  /** New connections work again; those that were made silent stay so. */
  heal(): void {
    this.#halfOpenNew = false;
    this.#refusing = false;
    this.#replyDelayMs = 0;
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.cut();
    for (const socket of this.#serverSockets) socket.destroy();
    await closed;
  }

  #find(sent: string): Link[] {
    return [...this.#links].filter((link) => link.sent.includes(sent));
  }

  #accept(client: Socket): void {
    client.on('error', () => {});
    if (this.#refusing) {
      this.#refused += 1;
      client.resetAndDestroy();
      return;
    }
    this.#accepted += 1;
    const server = connect({ ...this.#target, allowHalfOpen: true });
    const link: Link = { client, server, halfOpen: this.#halfOpenNew, sent: '' };
    this.#links.add(link);
    this.#serverSockets.add(server);
    server.on('close', () => this.#serverSockets.delete(server));
    server.on('error', () => client.destroy());
    client.on('close', () => {
      this.#links.delete(link);
      // Behind a broken network the server does not learn that its client has gone.
      if (!link.halfOpen) server.destroy();
    });
    client.on('data', (bytes) => {
      if (link.sent.length < sentCharactersMax) link.sent += bytes.toString('latin1');
      if (!link.halfOpen) server.write(bytes);
    });
    client.on('end', () => {
      if (link.halfOpen) client.destroy();
      else server.end();
    });
    server.on('data', (bytes) => this.#reply(link, () => client.write(bytes)));
    server.on('end', () => this.#reply(link, () => client.end()));
    server.on('close', () => this.#reply(link, () => client.end()));
  }

  #reply(link: Link, send: () => void): void {
    const sendUnlessSilent = (): void => {
      if (!link.halfOpen && !link.client.destroyed) send();
    };
    if (this.#replyDelayMs === 0) sendUnlessSilent();
    else setTimeout(sendUnlessSilent, this.#replyDelayMs);
  }
}

/** Starts a proxy on a free port of the loopback interface. */
export function startProxy(options: ProxyOptions): Promise<Proxy> {
  return Proxy.start(options);
}
