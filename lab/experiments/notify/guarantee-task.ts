/** What the experiment `guarantee` and its worker processes share. */
import { createWebhookProvider } from '../../../src/notify/index.js';

export interface WorkerTask {
  readonly databaseUrl: string;
  readonly port: number;
  readonly loop: 'engine' | 'naive';
}

/** Short, so that what a killed process left open is taken up within seconds. */
export const guaranteeTimings = { timeoutMs: 1_000, marginMs: 1_000, sweepEveryMs: 250, sweepMs: 5_000 };

export const webhookTo = (port: number) =>
  createWebhookProvider({ secrets: ['secret'], timeoutMs: 1_000, allow: [`127.0.0.1:${port}`] });
