/** Refuses JSON that is nested so deeply that walking it would use up the stack: nobody writes such by hand. */
import { invalidInput } from '../errors.js';

const depthMax = 64;

/** Throws `invalid-input` naming the field; walks level by level, so that it cannot itself be used up. */
export function refuseDeep(field: string, value: unknown): void {
  let level = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > depthMax)
      throw invalidInput(field, '(not shown)', `JSON that is nested at most ${depthMax} levels deep`);
    level = level.flatMap((one) => (typeof one === 'object' && one !== null ? Object.values(one) : []));
  }
}
