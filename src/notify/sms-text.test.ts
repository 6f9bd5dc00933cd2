/** Segments of text messages, against a list of known values and another implementation. */
import { SegmentedMessage } from 'sms-segments-calculator';
import { describe, expect, it } from 'vitest';
import { encodeSms } from './sms-text.js';

describe('N32: segments of a text message', () => {
  it.each([
    ['160 of GSM-7', 'a'.repeat(160), 1],
    ['161 of GSM-7', 'a'.repeat(161), 2],
    ['70 of UCS-2', 'ж'.repeat(70), 1],
    ['71 of UCS-2', 'ж'.repeat(71), 2],
    ['153 brackets', ']'.repeat(153), 3],
    ['80 euro signs', '€'.repeat(80), 1],
    ['69 letters and an emoji', `${'ж'.repeat(69)}😀`, 2],
    ['nothing', '', 1],
  ])('%s', (_name, text, segments) => {
    expect(encodeSms(text).segments).toBe(segments);
  });

  it('agrees with another implementation on texts of every length', () => {
    for (const alphabet of ['ab ', 'a]€', 'aж', 'ж😀']) {
      const characters = [...alphabet];
      for (let length = 1; length < 400; length += 7) {
        const text = Array.from({ length }, (_, index) => characters[index % characters.length]).join('');
        const theirs = new SegmentedMessage(text, 'auto').segmentsCount;
        expect([text, encodeSms(text).segments]).toEqual([text, theirs]);
      }
    }
  });

  it('writes an extension character as two septets', () => {
    expect([...encodeSms('a€').bytes]).toEqual([0x61, 0x1b, 0x65]);
    expect(encodeSms('ж').bytes.toString('hex')).toBe('0436');
  });
});
