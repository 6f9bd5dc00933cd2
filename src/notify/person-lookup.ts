/** What is known of users, for the door: look-ups of the same moment go to the database together. */
import type { Queryable } from '../database/index.js';
import { Coalescer } from './coalesce.js';
import type { NotifySettings } from './options.js';
import type { Person } from './people-store.js';

export type PersonLookup = (on: Queryable, users: readonly string[]) => Promise<Map<string, Person>>;

interface Found {
  readonly person: Person | undefined;
}

/** Users of one statement; who is looked up meanwhile is in the next one. */
const usersMax = 100;

export function createPersonLookup({ store, database }: NotifySettings): PersonLookup {
  const look = async (users: readonly string[]): Promise<Found[]> => {
    const persons = await store.persons(database, [...new Set(users)]);
    return users.map((user) => ({ person: persons.get(user) }));
  };
  const together = new Coalescer<string, Found>({
    sizeMax: usersMax,
    sideBySide: 1,
    together: look,
    alone: async (user) => (await look([user]))[0] as Found,
  });
  return async (on, users) => {
    const [only] = users;
    if (only === undefined) return new Map();
    if (users.length > 1 || on !== database) return store.persons(on, users);
    const { person } = await together.call(only);
    return person === undefined ? new Map() : new Map([[only, person]]);
  };
}
