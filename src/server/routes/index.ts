/** The list of route plug-ins; each file is one subject of the API. */
import { accountRoutes } from './accounts.js';
import { feedRoutes } from './feed.js';
import { homeRoutes } from './home.js';
import { messageRoutes } from './messages.js';
import { operatingRoutes } from './operating.js';
import { postRoutes } from './posts.js';
import { queueRoutes } from './queues.js';
import type { RegisterRoutes } from './register.js';

export const routes: readonly RegisterRoutes[] = [
  operatingRoutes,
  queueRoutes,
  messageRoutes,
  accountRoutes,
  postRoutes,
  homeRoutes,
  feedRoutes,
];
