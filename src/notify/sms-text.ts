/**
 * How a text travels as SMS: GSM-7 when every character is in its alphabet, else UCS-2, and in how many segments. An
 * extension character takes two places in GSM-7; no pair (extension or surrogate) is cut in two.
 */

const basic =
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\u001bÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà';
const escapeByte = 0x1b;
const extension: Readonly<Record<string, number>> = {
  '\f': 0x0a,
  '^': 0x14,
  '{': 0x28,
  '}': 0x29,
  '\\': 0x2f,
  '[': 0x3c,
  '~': 0x3d,
  ']': 0x3e,
  '|': 0x40,
  '€': 0x65,
};
const basicBytes = new Map([...basic].map((character, byte) => [character, byte]));
basicBytes.delete('\u001b');

const sizes = { gsm7: { single: 160, part: 153 }, ucs2: { single: 70, part: 67 } } as const;

export interface SmsText {
  readonly encoding: 'gsm7' | 'ucs2';
  readonly segments: number;
  /** Septets, one a byte, or UTF-16 in network order. */
  readonly bytes: Buffer;
}

export function encodeSms(text: string): SmsText {
  const characters = [...text];
  const septets = characters.map(septetsOf);
  if (septets.every((bytes) => bytes !== undefined)) {
    const units = septets as number[][];
    return {
      encoding: 'gsm7',
      segments: countSegments(
        units.map((bytes) => bytes.length),
        sizes.gsm7,
      ),
      bytes: Buffer.from(units.flat()),
    };
  }
  return {
    encoding: 'ucs2',
    segments: countSegments(
      characters.map((character) => character.length),
      sizes.ucs2,
    ),
    bytes: Buffer.from(text, 'utf16le').swap16(),
  };
}

function septetsOf(character: string): number[] | undefined {
  const byte = basicBytes.get(character);
  if (byte !== undefined) return [byte];
  const extended = extension[character];
  return extended === undefined ? undefined : [escapeByte, extended];
}

/** Fills segments from the left; what takes two places goes whole into the next when one is left. */
function countSegments(
  places: readonly number[],
  size: { readonly single: number; readonly part: number },
): number {
  const total = places.reduce((sum, count) => sum + count, 0);
  if (total <= size.single) return 1;
  let segments = 1;
  let used = 0;
  for (const count of places) {
    if (used + count > size.part) {
      segments += 1;
      used = 0;
    }
    used += count;
  }
  return segments;
}
