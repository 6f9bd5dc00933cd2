import { describe, expect, it } from 'vitest';
import { parseDestination } from './destination.js';

const parse = (address: string) => parseDestination('to[0]', { channel: 'sms', address });

describe('a phone number', () => {
  it.each(['+41791234567', '+15550100123', '+4915112345678', '+442071838750'])('%s is taken', (address) => {
    expect(parse(address).address).toBe(address);
  });

  it.each([
    ['without a country code', '0791234567'],
    ['with spaces', '+41 79 123 45 67'],
    ['with a second header', '+41791234567\r\nX: 1'],
    ['that is too short for its country', '+4179123456'],
    ['that is too long for its country', '+155501001234'],
    ['of a country that there is not', '+999123456'],
  ])('%s is refused by name', (_, address) => {
    expect(() => parse(address)).toThrow(expect.objectContaining({ field: 'to[0].address' }));
  });
});
