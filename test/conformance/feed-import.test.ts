/** Files of follows and posts: every format, what is left out and named, and that a second import changes nothing. */
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { type BadLine, type FollowFormat, readFollows, readPosts } from '../../src/feed/index.js';
import { idsOf, walkOlder } from '../../src/testing/feed-world.js';
import { databases, useWorlds } from './feed/worlds.js';

async function* chunks(bytes: Uint8Array, size = 7): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function collect<T>(records: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const record of records) all.push(record);
  return all;
}

async function follows(text: string | Uint8Array, format: FollowFormat) {
  const bad: BadLine[] = [];
  const bytes = typeof text === 'string' ? Buffer.from(text) : text;
  const pairs = await collect(readFollows(chunks(bytes), { format, onBadLine: (line) => bad.push(line) }));
  return { pairs, bad };
}

async function posts(text: string) {
  const bad: BadLine[] = [];
  const read = await collect(readPosts(chunks(Buffer.from(text)), { onBadLine: (line) => bad.push(line) }));
  return { read, bad };
}

describe('files of follows', () => {
  const pairs = [
    ['ada', 'ben'],
    ['ben', 'żółw 😀'],
  ];

  test('an edge list has tabs, spaces or commas, comments, CRLF and a byte order mark', async () => {
    expect((await follows('\uFEFF# graph\r\nada\tben\r\n\r\nben cid\ncid,ada', 'edges')).pairs).toEqual([
      ['ada', 'ben'],
      ['ben', 'cid'],
      ['cid', 'ada'],
    ]);
  });

  test('CSV may have a header, quotes and commas in them', async () => {
    const { pairs: read } = await follows('follower,followee\n"a, ""b""",c\nada,ben\n', 'csv');
    expect(read).toEqual([
      ['a, "b"', 'c'],
      ['ada', 'ben'],
    ]);
  });

  test('JSON lines are pairs or objects, and gzip is told by its first bytes', async () => {
    const text = '["ada","ben"]\n{"follower":"ben","followee":"żółw 😀"}\n';
    expect((await follows(text, 'jsonl')).pairs).toEqual(pairs);
    expect((await follows(gzipSync(text), 'jsonl')).pairs).toEqual(pairs);
  });

  test.each<[FollowFormat, string, readonly number[]]>([
    ['edges', 'a\na b c\na b\n', [1, 2]],
    ['csv', 'a\n"a,b\n"a"b,c\na,b\n', [1, 2, 3]],
    ['jsonl', '{\n["a"]\n[1,2]\nnull\n{"follower":"a"}\n["a","b"]\n', [1, 2, 3, 4, 5]],
  ])('bad lines of %s are named and the others read', async (format, text, lines) => {
    const { pairs: read, bad } = await follows(text, format);
    expect(bad.map(({ line }) => line)).toEqual(lines);
    expect(read).toEqual([['a', 'b']]);
  });

  test('a line that is no UTF-8, too long, or names an impossible account is left out', async () => {
    const long = 'x'.repeat(600 * 1024);
    const bytes = Buffer.concat([
      Buffer.from([0x61, 0x20, 0xff, 0x0a]),
      Buffer.from(`${long} b\n${'a'.repeat(129)} b\na b\n`),
    ]);
    const bad: BadLine[] = [];
    const read = await collect(
      readFollows(chunks(bytes, 65_536), { format: 'edges', onBadLine: (line) => bad.push(line) }),
    );
    expect(bad.map(({ line }) => line)).toEqual([1, 2, 3]);
    expect(bad[2]?.fault).toContain('128 characters');
    expect(read).toEqual([['a', 'b']]);
  });
});

describe('files of posts', () => {
  test('a post without a key, with an unknown field or without a body is left out and named', async () => {
    const { read, bad } = await posts(
      [
        '{"author":"ada","key":"1","text":"one","createdAt":1750000000000}',
        '{"author":"ada","text":"no key"}',
        '{"author":"ada","key":"2","txt":"?"}',
        '{"author":"ada","key":"3"}',
        '[]',
        '{"author":"ada","key":"4","data":{"a":1},"visibility":"followers"}',
      ].join('\n'),
    );
    expect(read.map(({ key }) => key)).toEqual(['1', '4']);
    expect(bad.map(({ line }) => line)).toEqual([2, 3, 4, 5]);
    expect(bad[1]?.fault).toContain('txt');
  });
});

describe.each(databases.slice(0, 1))('an import on $name', (on) => {
  const open = useWorlds(on);

  test('follows and posts of files are in the homes, and the same files again change nothing', async () => {
    const world = await open();
    const graph = Buffer.from('ada ben\nada cid\n');
    const written = Buffer.from(
      [
        '{"author":"ben","key":"old","text":"old","createdAt":1740000000000}',
        '{"author":"cid","key":"new","text":"new","createdAt":1745000000000}',
      ].join('\n'),
    );
    const onBadLine = ({ fault }: BadLine) => expect.unreachable(fault);
    const run = async () => ({
      follows: await world.feed.importFollows(readFollows(chunks(graph), { format: 'edges', onBadLine })),
      posts: await world.feed.importPosts(readPosts(chunks(written), { onBadLine })),
    });
    expect(await run()).toMatchObject({ follows: { created: 2 }, posts: { created: 2 } });
    await world.drain();
    const home = await walkOlder(world.feed, 'ada', 20);
    expect(home[0]?.items.map(({ text }) => text)).toEqual(['new', 'old']);
    expect(await run()).toMatchObject({
      follows: { created: 0, known: 2 },
      posts: { created: 0, known: 2 },
    });
    await world.drain();
    expect(idsOf(await walkOlder(world.feed, 'ada', 20))).toEqual(idsOf(home));
  });
});
