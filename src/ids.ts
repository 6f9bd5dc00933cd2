/**
 * Random ids: time-ordered ones for things that are stored (neighbours in time are neighbours in an index) and short
 * opaque ones for tokens. Neither decides anything: uniqueness comes from the random bits.
 */
import { randomFillSync } from 'node:crypto';

const poolBytes = 4_096;
const pool = Buffer.alloc(poolBytes);
let poolUsed = poolBytes;

/** Random bytes from a pool: one system call for hundreds of ids. */
function randomSlice(bytes: number): Buffer {
  if (poolUsed + bytes > poolBytes) {
    randomFillSync(pool);
    poolUsed = 0;
  }
  poolUsed += bytes;
  return pool.subarray(poolUsed - bytes, poolUsed);
}

function randomByte(): number {
  if (poolUsed === poolBytes) {
    randomFillSync(pool);
    poolUsed = 0;
  }
  poolUsed += 1;
  return pool[poolUsed - 1]!;
}

/** 127 random bits, 22 characters of [A-Za-z0-9_-]; the first is a letter: a command line takes `-x` for an option. */
export function randomToken(): string {
  const bytes = randomSlice(16);
  bytes[0]! &= 0x7f;
  return bytes.toString('base64url');
}

const digits = Buffer.from('0123456789abcdefghijklmnopqrstuvwxyz');
/** Filled anew for each id: a string that grows by one digit at a time costs twice as much. */
const randomDigits = Buffer.alloc(17);

/** 26 characters of [0-9a-z]: 9 of the time in milliseconds, 17 of random digits (87 bits). Sorts by time. */
export function timeOrderedId(now: number): string {
  for (let filled = 0; filled < randomDigits.length; ) {
    const byte = randomByte();
    // Bytes from 252 on would make the first digits likelier than the last.
    if (byte < 252) {
      randomDigits[filled] = digits[byte % 36]!;
      filled += 1;
    }
  }
  return now.toString(36).padStart(9, '0') + randomDigits.toString('latin1');
}
