/**
 * Reading a home whose timeline is outside the database: a window of the list, then one round trip to `home_page`, which
 * decides whether the list is believed. A list that cannot be read is no reason to fail: the home is read from the posts.
 */
import type { Queryable } from '../../../database/index.js';
import type { HomePage, HomeStore } from '../../store.js';
import type { ListWindow } from '../../timeline-lists.js';
import { type PageRow, pageFromRows, scanMax } from '../home.js';
import type { Apart } from './operations.js';

/** Numbers of readers never change; an account that was erased and made again is found out by its page. */
const numbersMax = 50_000;
/** Entries that may be hidden before a second window is needed. */
const spare = 10;
/** A window grows fourfold from turn to turn: no timeline is longer than so many. */
const turnsMax = 12;
const windowMax = 2_000;

type PageInput = Parameters<HomeStore['homePage']>[1];

export function homeApart({ schema, lists }: Apart): Pick<HomeStore, 'homePage'> {
  const numberOf = readerNumbers(schema);
  const page = `
    select h.* from ${schema}.home_page(
      $1, $2, $3, $4, $8, $5, $6, $7, true, $9, $10, $11, $12, $13, $14::bigint[], $15) h`;

  async function windowOf(reader: string, input: PageInput, count: number): Promise<ListWindow | undefined> {
    try {
      return await lists.read({ reader, position: input.position, older: input.older, count });
    } catch {
      return undefined;
    }
  }

  async function turn(on: Queryable, reader: string, input: PageInput, window: ListWindow | undefined) {
    const { position, older, limit, lagMaxMs, activeMs, now } = input;
    const list = window ?? { server: null, token: '-1', version: '0', floor: '0', ids: [], more: false };
    const values = [input.reader, position, older, limit, lagMaxMs, activeMs, scanMax, now ?? null];
    const { rows } = await on.query<PageRow>(page, [
      ...values,
      reader,
      list.server,
      list.token,
      list.version,
      list.floor,
      list.ids,
      list.more,
    ]);
    return pageFromRows(rows, older);
  }

  return {
    async homePage(on, input) {
      const reader = await numberOf.of(on, input.reader);
      if (reader === undefined) return undefined;
      const items: HomePage['items'][number][] = [];
      let [at, size] = [input.position, Math.ceil(1.1 * input.limit) + spare];
      let first: HomePage | undefined;
      const total = { candidates: 0, rounds: 0 };
      for (let turns = 1; ; turns += 1) {
        const asked = { ...input, position: at, limit: input.limit - items.length };
        const window = await windowOf(reader, asked, size);
        const part = await turn(on, reader, asked, window);
        if (!part) {
          numberOf.forget(input.reader);
          return undefined;
        }
        if (part.reader !== reader) numberOf.forget(input.reader);
        first ??= part;
        items.push(...part.items);
        total.candidates += part.candidates;
        total.rounds += part.rounds;
        const isEnd = part.exhausted || items.length > input.limit || part.lastPosition === at;
        if (isEnd || turns === turnsMax)
          return { ...first, ...total, items, exhausted: part.exhausted, lastPosition: part.lastPosition };
        at = part.lastPosition;
        size = Math.min(size * 4, windowMax);
      }
    },
  };
}

function readerNumbers(schema: string) {
  const resolve = `select number from ${schema}.accounts where id = $1 and erased_at is null`;
  const numbers = new Map<string, string>();
  return {
    async of(on: Queryable, id: string): Promise<string | undefined> {
      const held = numbers.get(id);
      if (held !== undefined) return held;
      const number = (await on.query<{ number: string }>(resolve, [id])).rows[0]?.number;
      if (number === undefined) return undefined;
      if (numbers.size >= numbersMax) numbers.clear();
      numbers.set(id, number);
      return number;
    },

    forget(id: string): void {
      numbers.delete(id);
    },
  };
}
