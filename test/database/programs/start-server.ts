/** Starts a throwaway PostgreSQL and prints where it is, then waits to be killed. */
import { startPostgresServer } from '../../../src/testing/index.js';

const server = await startPostgresServer();
console.log(JSON.stringify({ port: server.port, logFile: server.logFile }));
setInterval(() => {}, 60_000);
