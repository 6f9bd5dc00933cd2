/** The list of route plug-ins; each file is one subject of the API. */
import { accountRoutes } from './accounts.js';
import { campaignRoutes } from './campaigns.js';
import { feedRoutes } from './feed.js';
import { homeRoutes } from './home.js';
import { leaseRoutes } from './leases.js';
import { messageRoutes } from './messages.js';
import { notificationRoutes } from './notifications.js';
import { notifyOperatingRoutes } from './notify-operating.js';
import { operatingRoutes } from './operating.js';
import { postRoutes } from './posts.js';
import { queueRoutes } from './queues.js';
import { receiptRoutes } from './receipts.js';
import { recurringRoutes } from './recurring.js';
import type { RegisterRoutes } from './register.js';
import { sessionRoutes } from './session.js';
import { userRoutes } from './users.js';

export const routes: readonly RegisterRoutes[] = [
  operatingRoutes,
  queueRoutes,
  messageRoutes,
  leaseRoutes,
  recurringRoutes,
  accountRoutes,
  postRoutes,
  homeRoutes,
  feedRoutes,
  notificationRoutes,
  userRoutes,
  campaignRoutes,
  receiptRoutes,
  notifyOperatingRoutes,
  sessionRoutes,
];
