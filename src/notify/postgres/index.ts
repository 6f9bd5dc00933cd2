export { createPostgresNotifyStore, type PostgresNotifyStoreOptions } from './store.js';
