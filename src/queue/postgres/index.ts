export { createPostgresQueueStore, type PostgresQueueStoreOptions } from './store.js';
