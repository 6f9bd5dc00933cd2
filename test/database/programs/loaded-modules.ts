/** Imports the door of the database and prints the third-party modules that this has loaded. */
import { register } from 'node:module';

const hook = `export async function resolve(specifier, context, next) {
  const resolved = await next(specifier, context);
  if (resolved.url.includes('/node_modules/') && !resolved.url.includes('/node_modules/tsx/')) console.log(resolved.url);
  return resolved;
}`;
register(`data:text/javascript,${encodeURIComponent(hook)}`);
await import('../../../src/database/index.js');
await import('../../../src/signals.js');
console.log('done');
