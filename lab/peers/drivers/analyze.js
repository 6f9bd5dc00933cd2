/**
 * Statistics as a server has them whose autovacuum has come by. Without them the plans of a full table are those of an
 * empty one until it does: graphile-worker had a third of its speed in two rounds of three.
 */
import { Client } from 'pg';

export async function analyze(url) {
  if (!url.startsWith('postgres')) return;
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query('analyze');
  await client.end();
}
