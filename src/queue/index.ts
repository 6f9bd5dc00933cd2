export type * from './message.js';
export type * from './store.js';
