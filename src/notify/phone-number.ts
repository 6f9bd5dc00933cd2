/** What countries give out as phone numbers. The library is loaded with the first number. */
import { createRequire } from 'node:module';
import type * as Library from 'libphonenumber-js/min';
import { groundError } from '../errors.js';

let library: typeof Library | undefined;

/** Whether the number (E.164) has a country code and a length that its country has. */
export function isPossibleNumber(number: string): boolean {
  try {
    library ??= createRequire(import.meta.url)('libphonenumber-js/min') as typeof Library;
  } catch (cause) {
    const text = 'phone numbers need libphonenumber-js: npm install libphonenumber-js';
    throw groundError('driver-missing', text, { cause });
  }
  return library.isPossiblePhoneNumber(number);
}
