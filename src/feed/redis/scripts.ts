/** The Lua scripts of the timelines, each with what they share in front, called by digest. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export type ScriptName = 'push' | 'begin' | 'merge' | 'read' | 'remove';

export interface Script {
  readonly text: string;
  readonly digest: string;
}

/** The comments are for readers of the repository; the server keeps what is left. */
const readLua = (file: string): string =>
  readFileSync(new URL(`./lua/${file}.lua`, import.meta.url), 'utf8').replaceAll(/^\s*--.*\n/gm, '');

let scripts: Readonly<Record<ScriptName, Script>> | undefined;

export function timelineScripts(): Readonly<Record<ScriptName, Script>> {
  scripts ??= {
    push: script('push'),
    begin: script('begin'),
    merge: script('merge'),
    read: script('read'),
    remove: script('remove'),
  };
  return scripts;
}

function script(name: ScriptName): Script {
  const text = `${readLua('list')}${readLua(name)}`;
  return { text, digest: createHash('sha1').update(text).digest('hex') };
}
