export {
  ChildServer,
  type ChildServerOptions,
  findFreePort,
  findServerUser,
  type ServerUser,
} from './child-server.js';
export { findPostgresBinaries, type PostgresBinaries, type PostgresKind } from './postgres-binaries.js';
export { type PostgresServer, type PostgresServerOptions, startPostgresServer } from './postgres-server.js';
export { Proxy, type ProxyOptions, startProxy } from './proxy.js';
export { type RunServer, type RunServers, startRunServers } from './servers.js';
