/**
 * Lanes: slots kept free for messages that match. Guarantee: `floor` slots of each lane are used by its messages alone;
 * all other slots are shared, and a lane may borrow them but never loses its floor.
 *
 * Which of two messages of a lane sits on the floor and which has borrowed is nowhere recorded: a lane uses
 * max(0, running - floor) shared slots. So a shared slot is free again as soon as any message of a lane above its floor
 * ends.
 */
import { invalidInput } from '../errors.js';
import type { Metadata } from './message.js';

/** A floor counts for each worker process: two processes with a floor of 3 keep 6 slots. */
export interface Lane {
  /** Names the lane in metrics and errors. */
  readonly name: string;
  /** Metadata pairs that a message of this lane carries. */
  readonly where?: Metadata;
  /** The queue of this lane's messages. Default: every queue of the worker. */
  readonly queue?: string;
  /** Slots kept for this lane: a number, or a share of the worker's slots (rounded down, at least 1). */
  readonly floor: number | { readonly share: number };
}

export interface ResolvedLane {
  readonly name: string;
  readonly where: Metadata;
  readonly pairs: readonly (readonly [string, string])[];
  readonly queue: string | undefined;
  readonly floor: number;
}

/** The lane of a message that matches none. */
export const noLane = -1;

/** Fills in and checks each lane; refuses by name. Whether the floors fit together is asked by `checkFloors`. */
export function resolveLanes(request: {
  readonly lanes: readonly Lane[];
  readonly slots: number;
  readonly queues: readonly string[];
}): ResolvedLane[] {
  const names = new Set<string>();
  return request.lanes.map((lane, index) => {
    const field = `lanes[${index}]`;
    if (typeof lane.name !== 'string' || lane.name === '' || names.has(lane.name)) {
      throw invalidInput(`${field}.name`, lane.name, 'a name of its own that is not empty');
    }
    names.add(lane.name);
    const pairs = Object.entries(lane.where ?? {});
    if (pairs.length === 0 && lane.queue === undefined) {
      throw invalidInput(field, lane, 'where (metadata pairs), queue, or both');
    }
    if (lane.queue !== undefined && !request.queues.includes(lane.queue)) {
      throw invalidInput(
        `${field}.queue`,
        lane.queue,
        `one of the worker's queues (${request.queues.join(', ')})`,
      );
    }
    const floor = resolveFloor(lane.floor, request.slots, `${field}.floor`);
    return { name: lane.name, where: lane.where ?? {}, pairs, queue: lane.queue, floor };
  });
}

function resolveFloor(floor: Lane['floor'], slots: number, field: string): number {
  if (typeof floor === 'number') {
    if (Number.isSafeInteger(floor) && floor >= 0) return floor;
  } else if (typeof floor === 'object' && floor !== null && floor.share > 0 && floor.share < 1) {
    return Math.max(1, Math.floor(floor.share * slots));
  }
  throw invalidInput(field, floor, 'a whole number of slots of at least 0, or { share } above 0 and below 1');
}

/** Refuses floors that together leave no shared slot: messages of no lane would never run. */
export function checkFloors(lanes: readonly ResolvedLane[], slots: number): void {
  const sum = lanes.reduce((total, lane) => total + lane.floor, 0);
  if (lanes.length > 0 && sum > slots - 1) {
    const floors = lanes.map((lane) => `${lane.name} ${lane.floor}`).join(', ');
    throw invalidInput(
      'lanes',
      floors,
      `floors that sum to at most ${slots - 1}, so that one of ${slots} slots is shared`,
    );
  }
}

/** The first lane, in the order given, that a message belongs to. */
export function laneOf(
  lanes: readonly ResolvedLane[],
  message: { readonly queue: string; readonly metadata: Metadata },
): number {
  return lanes.findIndex(
    (lane) =>
      (lane.queue === undefined || lane.queue === message.queue) &&
      lane.pairs.every(([key, value]) => message.metadata[key] === value),
  );
}

/** Counts the slots in use. A lane is its index; `noLane` is everything else. */
export class SlotLedger {
  readonly #floors: readonly number[];
  readonly #shared: number;
  readonly #used: number[];
  #sharedUsed = 0;
  #usedByNone = 0;

  constructor(slots: number, floors: readonly number[]) {
    this.#floors = floors;
    this.#shared = slots - floors.reduce((total, floor) => total + floor, 0);
    this.#used = floors.map(() => 0);
  }

  sharedFree(): number {
    return this.#shared - this.#sharedUsed;
  }

  floorFree(lane: number): number {
    return lane === noLane ? 0 : Math.max(0, (this.#floors[lane] ?? 0) - (this.#used[lane] ?? 0));
  }

  /** Running of a lane, or of none. */
  used(lane: number): number {
    return (lane === noLane ? this.#usedByNone : this.#used[lane]) ?? 0;
  }

  canTake(lane: number): boolean {
    return this.#sharedUsed < this.#shared || this.floorFree(lane) > 0;
  }

  take(lane: number): void {
    if (this.floorFree(lane) === 0) this.#sharedUsed += 1;
    if (lane === noLane) this.#usedByNone += 1;
    else this.#used[lane] = this.used(lane) + 1;
  }

  give(lane: number): void {
    if (lane === noLane || this.used(lane) > (this.#floors[lane] ?? 0)) this.#sharedUsed -= 1;
    if (lane === noLane) this.#usedByNone -= 1;
    else this.#used[lane] = this.used(lane) - 1;
  }
}
