/**
 * One session of a server whose statements report the plans that they and the functions they call have run with, by the
 * extension auto_explain: what EXPLAIN of a function call does not show.
 */
import { createHash } from 'node:crypto';
import { Client, type CustomTypesConfig } from 'pg';
import type { Database, QueryResult, Row, Transaction } from '../../../src/database/index.js';
import { decoderOf, encodeValues } from '../../../src/database/values.js';

interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Join Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly 'Index Cond'?: string;
  readonly Plans?: readonly Plan[];
}

/** One statement as it ran. */
export interface Statement {
  readonly text: string;
  /** Pages, those of called functions included. */
  readonly pages: number;
  /** Rows that its scans of tables have read, those that a filter refused included. */
  readonly rows: number;
  /** Pairs of rows that its joins have compared in vain. */
  readonly comparedInVain: number;
  /** `Index Scan of messages by messages_pkey: 10`, for each scan of a table. */
  readonly scans: readonly {
    readonly kind: string;
    readonly table: string;
    readonly rows: number;
    readonly text: string;
  }[];
}

export class ExplainedSession implements Database {
  readonly driver = 'pg';
  readonly #client: Client;
  #statements: Statement[] = [];

  private constructor(client: Client) {
    this.#client = client;
    client.on('notice', ({ message }) => {
      const start = message?.indexOf('{') ?? -1;
      if (message === undefined || start < 0 || !message.startsWith('duration:')) return;
      const { 'Query Text': text, Plan: plan } = JSON.parse(message.slice(start)) as {
        'Query Text': string;
        Plan: Plan;
      };
      this.#statements.push(statementOf(text, plan));
    });
  }

  static async open(url: string): Promise<ExplainedSession> {
    const types = { getTypeParser: decoderOf as CustomTypesConfig['getTypeParser'] };
    const client = new Client({ connectionString: url, types });
    await client.connect();
    await client.query(`
      load 'auto_explain';
      set auto_explain.log_min_duration = 0; set auto_explain.log_nested_statements = on; set auto_explain.log_analyze = on;
      set auto_explain.log_buffers = on; set auto_explain.log_timing = off; set auto_explain.log_format = json;
      set auto_explain.log_level = notice`);
    return new ExplainedSession(client);
  }

  /** The statements of `work`, those inside functions before the one that called them. */
  async explain(work: () => Promise<unknown>): Promise<Statement[]> {
    this.#statements = [];
    await work();
    return this.#statements;
  }

  async query<R extends Row = Row>(text: string, values: readonly unknown[] = []): Promise<QueryResult<R>> {
    const name = createHash('sha256').update(text).digest('base64url').slice(0, 22);
    const result = await this.#client.query<R>({ text, name, values: encodeValues(values) });
    return { rows: result.rows, rowCount: result.rowCount ?? 0 };
  }

  async script(text: string): Promise<void> {
    await this.#client.query(text);
  }

  async transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    await this.script('begin');
    const answer = await work({
      inTransaction: true,
      query: (text, values) => this.query(text, values),
      script: (text) => this.script(text),
    });
    await this.script('commit');
    return answer;
  }

  listen = async (): Promise<() => Promise<void>> => async () => {};

  durability = () => Promise.reject(new Error('not asked here'));

  async close(): Promise<void> {
    await this.#client.end();
  }
}

function statementOf(text: string, plan: Plan): Statement {
  const scans: Statement['scans'][number][] = [];
  let comparedInVain = 0;
  const walk = (node: Plan): void => {
    comparedInVain += (node['Rows Removed by Join Filter'] ?? 0) * node['Actual Loops'];
    const table = node['Relation Name'];
    if (table !== undefined && node['Node Type'].includes('Scan')) {
      const each =
        node['Actual Rows'] +
        (node['Rows Removed by Filter'] ?? 0) +
        (node['Rows Removed by Index Recheck'] ?? 0);
      const rows = Math.round(each * node['Actual Loops']);
      const by = node['Index Name'] === undefined ? '' : ` by ${node['Index Name']}`;
      scans.push({
        kind: node['Node Type'],
        table,
        rows,
        text: `${node['Node Type']} of ${table}${by}: ${rows}`,
      });
    }
    for (const child of node.Plans ?? []) walk(child);
  };
  walk(plan);
  return {
    text,
    pages: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'],
    rows: scans.reduce((sum, { rows }) => sum + rows, 0),
    comparedInVain,
    scans,
  };
}
