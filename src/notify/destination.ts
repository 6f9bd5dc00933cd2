/** Checks where something is to go: refused by name at the edge, so that no address can carry a second header. */
import { isIP } from 'node:net';
import { invalidInput } from '../errors.js';
import { channels, pushPlatforms, type Destination } from './notification.js';
import { isPossibleNumber } from './phone-number.js';

const addressBytesMax = 4_096;
// What follows is what may stand in an envelope and a header: no spaces, no control characters, no brackets, no commas.
const emailPattern = /^[^\s@<>"(),:;[\]\\\p{Cc}]{1,64}@[^\s@<>"(),:;[\]\\\p{Cc}]{1,255}$/u;
const phonePattern = /^\+[1-9]\d{6,14}$/;

/** A line of text that can stand in a header, a log line or a key: no control characters. */
export function parseLine(field: string, value: unknown, charactersMax: number): string {
  if (
    typeof value !== 'string' ||
    value === '' ||
    value.length > charactersMax ||
    /\p{Cc}|\p{Surrogate}/u.test(value)
  )
    throw invalidInput(field, value, `1 to ${charactersMax} characters of text without control characters`);
  return value;
}

export function parseDestination(field: string, destination: Destination): Destination {
  const { channel, address, details } = destination;
  if (!(channels as readonly string[]).includes(channel))
    throw invalidInput(`${field}.channel`, channel, `one of ${channels.join(', ')}`);
  parseLine(`${field}.address`, address, addressBytesMax);
  if (channel === 'email' && !emailPattern.test(address))
    throw invalidInput(`${field}.address`, address, 'one e-mail address');
  if (channel === 'sms') parsePhone(`${field}.address`, address);
  if (channel === 'webhook') parseWebhookUrl(`${field}.address`, address);
  if (channel === 'push') parsePush(field, destination);
  if (details !== undefined && (typeof details !== 'object' || details === null || Array.isArray(details)))
    throw invalidInput(`${field}.details`, typeof details, 'an object');
  return destination;
}

/** One form for one number, or the same phone would be two destinations; and a length that its country knows. */
function parsePhone(field: string, address: string): void {
  if (!phonePattern.test(address))
    throw invalidInput(field, address, 'a phone number in E.164, such as +41791234567');
  if (!isPossibleNumber(address))
    throw invalidInput(
      field,
      address,
      'a phone number with a country code and a length that the country has',
    );
}

function parsePush(field: string, { address, details }: Destination): void {
  const platform = details?.['platform'];
  if (!(pushPlatforms as readonly unknown[]).includes(platform))
    throw invalidInput(`${field}.details.platform`, platform, `one of ${pushPlatforms.join(', ')}`);
  if (platform !== 'web') return;
  if (!URL.canParse(address) || new URL(address).protocol !== 'https:')
    throw invalidInput(`${field}.address`, address, 'the https endpoint of a push subscription');
  for (const name of ['p256dh', 'auth']) {
    if (typeof details?.[name] !== 'string')
      throw invalidInput(`${field}.details.${name}`, undefined, 'a key of the push subscription');
  }
}

function parseWebhookUrl(field: string, address: string): void {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (
    url === undefined ||
    !['http:', 'https:'].includes(url.protocol) ||
    url.username !== '' ||
    url.password !== ''
  )
    throw invalidInput(field, address, 'an http or https URL without user and password');
  // A host name of its own, or an address in its usual form: 0x7f.1 and 2130706433 are read as addresses by URL.
  if (isIP(url.hostname.replace(/^\[|\]$/g, '')) !== 0 && !address.toLowerCase().includes(url.hostname))
    throw invalidInput(field, address, 'an address in its usual form');
}
