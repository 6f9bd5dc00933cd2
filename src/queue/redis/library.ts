/**
 * The function library that the store loads into Redis: the Lua files of this folder as one text, named by its digest, so that
 * processes of two versions run side by side, each with its own functions.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { configurationDefault, settledTokenMs } from '../store.js';
import { packConfiguration } from './configuration.js';

/** In this order: a file uses what those before it define. */
const shared = [
  'keys',
  'record',
  'context',
  'flush',
  'moves',
  'enqueue',
  'lease',
  'hand-out',
  'dequeue',
  'settle',
  'complete',
];
/** Nobody uses what these define: each is a block of its own, because a Lua chunk has room for 200 names. */
const separate = [
  'one',
  'dequeue-together',
  'complete-and-more',
  'follow-ups',
  'operate',
  'read',
  'shards',
  'keep',
];

export interface FunctionLibrary {
  readonly text: string;
  /** The full name of a function. */
  functionName(name: string): string;
}

const escaped = (bytes: Buffer): string =>
  `'${[...bytes].map((byte) => `\\${String(byte).padStart(3, '0')}`).join('')}'`;

/** The comments are for readers of the repository; the server keeps what is left. */
const readLua = (file: string): string =>
  readFileSync(new URL(`./lua/${file}.lua`, import.meta.url), 'utf8').replaceAll(/^\s*--.*\n/gm, '');

let library: FunctionLibrary | undefined;

export function functionLibrary(): FunctionLibrary {
  library ??= readLibrary();
  return library;
}

function readLibrary(): FunctionLibrary {
  const constants = [
    `local DEFAULT_CONFIGURATION = ${escaped(packConfiguration(configurationDefault))}`,
    `local SETTLED_TOKEN_MS = ${settledTokenMs}`,
  ];
  const body = [...shared.map(readLua), ...separate.map((file) => `do\n${readLua(file)}\nend`)];
  const digest = createHash('sha256')
    .update([...constants, ...body].join('\n'))
    .digest('hex')
    .slice(0, 12);
  const name = `headgate_queue_${digest}`;
  const text = [`#!lua name=${name}`, `local PREFIX = 'hgq_${digest}_'`, ...constants, ...body].join('\n');
  const known = new Map<string, string>();
  const functionName = (short: string): string => {
    let full = known.get(short);
    if (full === undefined) known.set(short, (full = `hgq_${digest}_${short}`));
    return full;
  };
  return { text, functionName };
}
