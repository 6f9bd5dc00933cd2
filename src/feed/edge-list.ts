/**
 * Reads edge lists as a stream: one pair a line, separated by tabs or spaces (or a comma), `#` begins a comment line,
 * line ends may be CRLF, the whole may be gzip. Memory holds one chunk and one line.
 */
import { invalidInput } from '../errors.js';
import { decompressed } from './decompressed.js';

const lineCharactersMax = 4_096;

/** Pairs of [follower, followee]; throws `invalid-input` naming the line that is no pair. */
export async function* parseEdgeList(
  source: AsyncIterable<Uint8Array | string>,
): AsyncGenerator<readonly [string, string]> {
  let number = 0;
  for await (const lines of linesOf(decompressed(source))) {
    for (const line of lines) {
      number += 1;
      const pair = parseLine(line, number);
      if (pair) yield pair;
    }
  }
}

function parseLine(lineGiven: string, number: number): readonly [string, string] | undefined {
  const line = lineGiven.trim();
  if (line === '' || line.startsWith('#')) return undefined;
  const [follower, followee, ...rest] = line.split(/[\t ,]+/);
  if (follower && followee && rest.length === 0) return [follower, followee];
  throw invalidInput(`line ${number}`, line, 'two ids separated by a tab or a space');
}

/** Lines in chunks, because a generator step a line would cost more than the line. */
async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string[]> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > lineCharactersMax) {
      throw invalidInput('line', rest.slice(0, 80), `at most ${lineCharactersMax} characters a line`);
    }
    yield lines;
  }
  yield [rest + decoder.decode()];
}
