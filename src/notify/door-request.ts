/** Reads what a caller hands to the door: everything that is refused is refused here, by name, before anything is written. */
import { invalidInput } from '../errors.js';
import { parseDestination } from './destination.js';
import type { AnyKind } from './kinds.js';
import type { Destination, JsonObject, SendRequest } from './notification.js';
import type { Person } from './people-store.js';

/** A destination, or why there is none to call. */
export type Target = Destination & { readonly suppressed?: string | undefined };

export function destinationOf({ channel, address, details }: Target): Destination {
  return { channel, address, ...(details !== undefined && { details }) };
}

const destinationsMax = 1_000;

export function parseData(kindName: string, kind: AnyKind, data: unknown): JsonObject {
  if (typeof data !== 'object' || data === null || Array.isArray(data))
    throw invalidInput('data', Array.isArray(data) ? 'an array' : typeof data, 'a JSON object');
  if (kind.data === undefined) return data as JsonObject;
  try {
    return kind.data(data) as JsonObject;
  } catch {
    // Neither the value nor the words of the check, which may quote it: it may be a code.
    throw invalidInput('data', 'data that its check refused', `data as the kind ${kindName} defines it`);
  }
}

/** The destinations of the request, else the user's on the channels of the kind. */
export function parseTargets(kind: AnyKind, request: SendRequest, person: Person | undefined): Target[] {
  const targets: readonly Target[] = request.to ?? registered(kind, request.user, person);
  if (!Array.isArray(targets) || targets.length === 0 || targets.length > destinationsMax)
    throw invalidInput(
      'to',
      Array.isArray(targets) ? targets.length : typeof targets,
      `1 to ${destinationsMax} destinations`,
    );
  const seen = new Set<string>();
  return targets.map((target, index) => {
    if (target.suppressed === undefined) parseDestination(`to[${index}]`, target);
    const name = `${target.channel} ${target.address}`;
    if (seen.has(name)) throw invalidInput(`to[${index}]`, target.channel, 'each destination once');
    seen.add(name);
    return target;
  });
}

/** A channel without a destination is said so in the history, and not passed over. */
function registered(kind: AnyKind, user: string, person: Person | undefined): Target[] {
  return kind.channels.flatMap((channel): Target[] => {
    if (channel === 'inbox') return [{ channel, address: user }];
    const known = (person?.destinations ?? []).filter((destination) => destination.channel === channel);
    const live = known.filter(({ retired }) => retired === undefined);
    if (live.length > 0)
      return live.map(({ address, details }) => ({ channel, address, ...(details && { details }) }));
    const last = known.at(-1);
    if (last === undefined) return [{ channel, address: 'none', suppressed: 'no destination' }];
    return [{ channel, address: last.address, suppressed: `destination retired: ${last.retired}` }];
  });
}

export function parseSendAt(sendAt: number | Date | undefined): number | undefined {
  if (sendAt === undefined) return undefined;
  const at = sendAt instanceof Date ? sendAt.getTime() : sendAt;
  if (!Number.isSafeInteger(at) || at < 0)
    throw invalidInput('sendAt', sendAt, 'a time in unix milliseconds or a Date');
  return at;
}
