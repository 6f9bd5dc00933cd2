/** Opens an embedded database and holds it until it is ended; prints `open`, or the code of the error. */
import { openPglite } from '../../../src/database/index.js';

const [folder = '', seedFile = '', address = ''] = process.argv.slice(2);
try {
  const database = await openPglite({ folder, seedFile });
  if (address !== '') database.folderLock?.setAddress(address);
  console.log('open');
  setInterval(() => {}, 60_000);
} catch (error) {
  console.log((error as { code?: string }).code ?? String(error));
}
