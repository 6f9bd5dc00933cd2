/** Parses what commands take beside plain text, and names the argument that is wrong. */
import { invalidInput } from '../errors.js';

/** `KEY=VALUE`, as often as wanted, into an object; for commander's option parser. */
export function pairs(name: string) {
  return (text: string, before: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> => {
    const at = text.indexOf('=');
    if (at < 1) throw invalidInput(name, text, 'KEY=VALUE');
    return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
  };
}

export function json(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalidInput(name, text, 'JSON (quote it for the shell, strings in double quotes)');
  }
}

export function number(name: string) {
  return (text: string): number => {
    const value = Number(text);
    if (text.trim() === '' || !Number.isFinite(value)) throw invalidInput(name, text, 'a number');
    return value;
  };
}

/** `CHANNEL:ADDRESS`, as often as wanted, into a list of destinations; for commander's option parser. */
export function destinations(
  text: string,
  before: readonly Readonly<Record<string, unknown>>[] = [],
): readonly Readonly<Record<string, unknown>>[] {
  const at = text.indexOf(':');
  if (at < 1) throw invalidInput('--to', text, 'CHANNEL:ADDRESS, such as sms:+41791234567');
  return [...before, { channel: text.slice(0, at), address: text.slice(at + 1) }];
}
