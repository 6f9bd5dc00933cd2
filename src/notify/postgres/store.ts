/**
 * The store of notifications on PostgreSQL and the embedded database. start() brings the schema up to date; the default
 * schema is headgate_notify.
 */
import { type Database, migrate, quoteSchema } from '../../database/index.js';
import type { Log } from '../../log.js';
import type { NotifyStore } from '../store.js';
import { campaignOperations } from './operations/campaigns.js';
import { claim } from './operations/claim.js';
import { digestOperations } from './operations/digests.js';
import { doorOperations } from './operations/door.js';
import { hold } from './operations/hold.js';
import { inboxOperations } from './operations/inbox.js';
import { kindOperations } from './operations/kinds.js';
import { limitOperations } from './operations/limits.js';
import { personOperations } from './operations/person.js';
import { preferenceOperations } from './operations/preferences.js';
import { providerOperations } from './operations/providers.js';
import { purge } from './operations/purge.js';
import { readOperations } from './operations/read.js';
import { receiptOperations } from './operations/receipts.js';
import { settle } from './operations/settle.js';
import { suppressWaiting } from './operations/suppress.js';
import { settleLost, wakeOverdue } from './operations/sweep.js';

export interface PostgresNotifyStoreOptions {
  readonly database: Database;
  /** Default: headgate_notify. */
  readonly schema?: string | undefined;
  readonly log?: Log | undefined;
}

export function createPostgresNotifyStore(options: PostgresNotifyStoreOptions): NotifyStore {
  const { database, schema: name = 'headgate_notify', log } = options;
  const schema = quoteSchema(name);
  return {
    name: 'postgres',
    ...kindOperations(schema),
    ...doorOperations(schema),
    ...limitOperations(schema),
    ...personOperations(schema),
    ...preferenceOperations(schema),
    ...digestOperations(schema),
    ...campaignOperations(schema),
    ...inboxOperations(schema),
    ...providerOperations(schema),
    ...receiptOperations(schema),
    ...readOperations(schema),
    claim: claim(schema, database),
    settle: settle(schema, database),
    hold: hold(schema),
    suppressWaiting: suppressWaiting(schema),
    settleLost: settleLost(schema),
    wakeOverdue: wakeOverdue(schema),
    purge: purge(schema),

    async start() {
      const directory = new URL('./migrations/', import.meta.url);
      await migrate(database, { part: 'notify', schema: name, directory, ...(log && { log }) });
    },

    async stop() {},
  };
}
