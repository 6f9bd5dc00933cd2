/** What the server is a face of: the parts it speaks to, and what it may tell about the process around it. */
import type { Feed } from '../feed/index.js';
import type { Notify } from '../notify/index.js';
import type { Queue } from '../queue/index.js';
import type { Prometheus } from './metrics.js';

export interface Progress {
  readonly stage: string;
  readonly done: number;
  readonly total: number;
}

export interface Readiness {
  /** The parts stand and /v1 answers; the demo world may still be loading. */
  readonly serving: boolean;
  /** Everything the process was started for is there. */
  readonly ready: boolean;
  readonly stage: string;
  readonly progress: Progress | undefined;
}

export interface ServerParts {
  /** Called for each request, since parts come after the listening socket. */
  queue(): Queue;
  feed(): Feed;
  notify(): Notify;
  /** Where providers and people reach this server, without a slash at the end; undefined: as the request says. */
  notifyPublicUrl(): string | undefined;
  readonly prometheus: Prometheus;
  readiness(): Readiness;
  /** What an acknowledged write survives here, in a sentence. */
  durability(): string;
}
