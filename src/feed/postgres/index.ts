export { createPostgresFeedStore, type PostgresFeedStoreOptions } from './store.js';
