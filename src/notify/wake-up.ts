/**
 * The queue's message of a delivery: a wake-up that carries its id and nothing else. It may be lost, doubled or late;
 * the row decides.
 */
import type { NewMessage } from '../queue/index.js';
import type { Priority } from './kinds.js';

/** Far above any time in milliseconds: all of one class come before all of the next, each in order of time. */
const classStep = 100_000_000_000_000;
const classes: Readonly<Record<Priority, number>> = { urgent: 0, normal: 1, bulk: 2 };
/** The row counts its own attempts; a wake-up is worth nothing by itself. */
const attemptsMax = 2_147_483_647;

export function wakeUp(request: {
  readonly id: string;
  readonly kind: string;
  readonly priority: Priority;
  readonly runAfter: number;
  readonly delayMs: number;
}): NewMessage {
  return {
    id: request.id,
    payload: null,
    metadata: { kind: request.kind, priority: request.priority },
    priority: classes[request.priority] * classStep + request.runAfter,
    delayMs: request.delayMs,
    attemptsMax,
    uniqueWhileLive: true,
  };
}
