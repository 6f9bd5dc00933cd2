/**
 * Reads text as a stream of numbered lines: gzip or not, LF or CRLF, a byte order mark left out. A line that is too long
 * or no UTF-8 is told instead of given, and the next one is read. Memory holds one chunk and one line.
 */
import { isUtf8 } from 'node:buffer';
import { decompressed } from './decompressed.js';

/** Room for a post of 10,000 characters and 32 KiB of data with everything escaped. */
export const lineBytesMax = 512 * 1024;

export interface Line {
  /** From 1. */
  readonly number: number;
  /** Undefined: it could not be read, and `fault` says why. */
  readonly text: string | undefined;
  readonly fault?: string;
}

const lineFeed = 0x0a;

/** Lines in arrays, because a generator step a line would cost more than the line. */
export async function* readLines(source: AsyncIterable<Uint8Array | string>): AsyncGenerator<Line[]> {
  let number = 0;
  let rest: Buffer = Buffer.alloc(0);
  // Within a line that is too long: what comes up to its end is dropped.
  let skipping = false;
  const lineOf = (bytes: Buffer): Line => {
    number += 1;
    if (skipping || bytes.length > lineBytesMax) {
      skipping = false;
      return { number, text: undefined, fault: `longer than ${lineBytesMax} bytes` };
    }
    if (!isUtf8(bytes)) return { number, text: undefined, fault: 'not UTF-8' };
    return { number, text: textOf(bytes, number === 1) };
  };
  for await (const chunk of decompressed(source)) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const lines: Line[] = [];
    let from = 0;
    for (let end = bytes.indexOf(lineFeed); end >= 0; end = bytes.indexOf(lineFeed, from)) {
      lines.push(lineOf(bytes.subarray(from, end)));
      from = end + 1;
    }
    rest = bytes.subarray(from);
    if (rest.length > lineBytesMax) {
      skipping = true;
      rest = Buffer.alloc(0);
    }
    if (lines.length > 0) yield lines;
  }
  if (rest.length > 0 || skipping) yield [lineOf(rest)];
}

function textOf(bytes: Buffer, isFirst: boolean): string {
  const end = bytes.at(-1) === 0x0d ? bytes.length - 1 : bytes.length;
  const text = bytes.toString('utf8', 0, end);
  return isFirst && text.startsWith('\uFEFF') ? text.slice(1) : text;
}
