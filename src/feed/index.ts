export type * from './account.js';
export type * from './feed.js';
export type * from './home.js';
export type * from './operate.js';
export type * from './post.js';
