export { createMemoryQueueStore } from './store.js';
