/** The bytes of a file that may be gzip, told by its first two bytes, as a stream: memory holds one chunk. */
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';

export async function* decompressed(source: AsyncIterable<Uint8Array | string>): AsyncGenerator<Buffer> {
  const chunks = buffersOf(source);
  // Two bytes tell gzip; a first chunk of one byte is joined with the next.
  let head: Buffer = Buffer.alloc(0);
  while (head.length < 2) {
    const { value, done } = await chunks.next();
    if (done) break;
    head = Buffer.concat([head, value]);
  }
  const whole = withHead(head, chunks);
  if (head[0] === 0x1f && head[1] === 0x8b) yield* Readable.from(whole).pipe(createGunzip());
  else yield* whole;
}

async function* withHead(head: Buffer, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  if (head.length > 0) yield head;
  yield* rest;
}

async function* buffersOf(source: AsyncIterable<Uint8Array | string>): AsyncGenerator<Buffer> {
  for await (const chunk of source) {
    if (chunk.length > 0) yield Buffer.from(chunk as Uint8Array);
  }
}
