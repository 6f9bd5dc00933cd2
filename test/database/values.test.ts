import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/database/index.js';
import { testDatabases } from './test-databases.js';

interface RoundTrip {
  readonly name: string;
  readonly type: string;
  readonly sent: unknown;
  readonly received: unknown;
}

const roundTrips: readonly RoundTrip[] = [
  { name: 'the largest int8', type: 'int8', sent: 9223372036854775807n, received: '9223372036854775807' },
  { name: 'int8 as text', type: 'int8', sent: '-9223372036854775808', received: '-9223372036854775808' },
  { name: 'int8 from a number', type: 'int8', sent: 1764508800000, received: '1764508800000' },
  { name: 'int4', type: 'int4', sent: -7, received: -7 },
  { name: 'int2', type: 'int2', sent: 7, received: 7 },
  { name: 'float8', type: 'float8', sent: 0.1, received: 0.1 },
  { name: 'float8 that is not a number', type: 'float8', sent: Number.NaN, received: Number.NaN },
  {
    name: 'float8 without end',
    type: 'float8',
    sent: Number.NEGATIVE_INFINITY,
    received: Number.NEGATIVE_INFINITY,
  },
  {
    name: 'numeric',
    type: 'numeric',
    sent: '12345678901234567890.123',
    received: '12345678901234567890.123',
  },
  { name: 'true', type: 'bool', sent: true, received: true },
  { name: 'false', type: 'bool', sent: false, received: false },
  { name: 'empty text', type: 'text', sent: '', received: '' },
  {
    name: 'text of several bytes a character',
    type: 'text',
    sent: 'naïve 你好 👋🏽',
    received: 'naïve 你好 👋🏽',
  },
  { name: 'text with quotes and backslashes', type: 'text', sent: `'"\\{},\n\t`, received: `'"\\{},\n\t` },
  { name: 'json keeps its spaces', type: 'json', sent: '{ "b":1, "a": 2 }', received: '{ "b":1, "a": 2 }' },
  { name: 'jsonb is text', type: 'jsonb', sent: '{"a":[1,null,"x"]}', received: '{"a": [1, null, "x"]}' },
  { name: 'json null is text', type: 'jsonb', sent: 'null', received: 'null' },
  {
    name: 'bytea',
    type: 'bytea',
    sent: Uint8Array.of(0, 1, 127, 128, 255),
    received: Uint8Array.of(0, 1, 127, 128, 255),
  },
  { name: 'empty bytea', type: 'bytea', sent: new Uint8Array(), received: new Uint8Array() },
  { name: 'bytea from a Buffer', type: 'bytea', sent: Buffer.from('ab'), received: Uint8Array.of(97, 98) },
  {
    name: 'timestamptz',
    type: 'timestamptz',
    sent: new Date(1764508800123),
    received: new Date(1764508800123),
  },
  {
    name: 'timestamptz cuts microseconds',
    type: 'timestamptz',
    sent: '2026-11-30 12:00:00.123999+02',
    received: new Date('2026-11-30T10:00:00.123Z'),
  },
  {
    name: 'timestamptz long ago',
    type: 'timestamptz',
    sent: '0044-03-15 12:00:00+00 BC',
    received: new Date('-000043-03-15T12:00:00Z'),
  },
  { name: 'timestamptz without end', type: 'timestamptz', sent: 'infinity', received: new Date(8.64e15) },
  {
    name: 'timestamp stays text',
    type: 'timestamp',
    sent: '2026-11-30 12:00:00',
    received: '2026-11-30 12:00:00',
  },
  { name: 'date stays text', type: 'date', sent: '2026-11-30', received: '2026-11-30' },
  {
    name: 'uuid',
    type: 'uuid',
    sent: '01933b5e-0000-7000-8000-000000000000',
    received: '01933b5e-0000-7000-8000-000000000000',
  },
  { name: 'null', type: 'text', sent: null, received: null },
  { name: 'undefined as null', type: 'int8', sent: undefined, received: null },
  { name: 'an empty array', type: 'text[]', sent: [], received: [] },
  {
    name: 'text[] of what looks like something else',
    type: 'text[]',
    sent: ['null', 'NULL', 'Null', 'nulls', '-1.5', 'a-b.c_d', 'a b', '{}', 't', ''],
    received: ['null', 'NULL', 'Null', 'nulls', '-1.5', 'a-b.c_d', 'a b', '{}', 't', ''],
  },
  {
    name: 'text[]',
    type: 'text[]',
    sent: ['a', '', 'NULL', '"\\{},', ' b ', null],
    received: ['a', '', 'NULL', '"\\{},', ' b ', null],
  },
  {
    name: 'text[][]',
    type: 'text[]',
    sent: [
      ['a', 'b'],
      ['c', 'd'],
    ],
    received: [
      ['a', 'b'],
      ['c', 'd'],
    ],
  },
  { name: 'int8[]', type: 'int8[]', sent: [1n, '2', 3, null], received: ['1', '2', '3', null] },
  { name: 'int4[]', type: 'int4[]', sent: [1, null], received: [1, null] },
  {
    name: 'float8[]',
    type: 'float8[]',
    sent: [0.5, Number.POSITIVE_INFINITY],
    received: [0.5, Number.POSITIVE_INFINITY],
  },
  { name: 'bool[]', type: 'bool[]', sent: [true, false, null], received: [true, false, null] },
  { name: 'numeric[]', type: 'numeric[]', sent: ['1.50'], received: ['1.50'] },
  { name: 'jsonb[]', type: 'jsonb[]', sent: ['{"a":"\\\\"}', null], received: ['{"a": "\\\\"}', null] },
  {
    name: 'bytea[]',
    type: 'bytea[]',
    sent: [Uint8Array.of(0, 92), null],
    received: [Uint8Array.of(0, 92), null],
  },
  { name: 'timestamptz[]', type: 'timestamptz[]', sent: [new Date(0), null], received: [new Date(0), null] },
  { name: 'an array that does not begin at 1', type: 'int4[]', sent: '[0:1]={5,6}', received: [5, 6] },
];

const refused: readonly { readonly name: string; readonly value: unknown; readonly field: string }[] = [
  { name: 'text with NUL', value: 'a\0b', field: '$1' },
  { name: 'half a surrogate pair', value: 'a\ud83d', field: '$1' },
  { name: 'NUL inside an array', value: ['a', 'b\0'], field: '$1[2]' },
  { name: 'an object', value: { a: 1 }, field: '$1' },
  { name: 'a date that is none', value: new Date(Number.NaN), field: '$1' },
  { name: 'a function', value: () => {}, field: '$1' },
];

describe.each(testDatabases())('values on $name', ({ open }) => {
  let database: Database;
  beforeAll(async () => {
    database = await open();
  });
  afterAll(() => database.close());

  test.each(roundTrips)('$name comes back by the rules', async ({ type, sent, received }) => {
    const { rows } = await database.query(`select $1::${type} as value`, [sent]);
    expect(rows).toStrictEqual([{ value: received }]);
  });

  test.each(roundTrips)('$name comes back from a table', async ({ name, type, sent, received }) => {
    const table = `"${name}"`;
    await database.query(`create table ${table} (value ${type})`);
    await database.query(`insert into ${table} values ($1)`, [sent]);
    const { rows } = await database.query(`select value from ${table}`);
    expect(rows).toStrictEqual([{ value: received }]);
  });

  test.each(refused)('$name is refused by the number of its parameter', async ({ value, field }) => {
    await expect(database.query('select $1::text', [value])).rejects.toMatchObject({
      code: 'invalid-input',
      field,
    });
  });

  test('rowCount counts rows returned or changed', async () => {
    await database.script('create table counted (a int); insert into counted values (1), (2), (3)');
    expect((await database.query('select * from counted')).rowCount).toBe(3);
    expect((await database.query('update counted set a = 9 where a < 3')).rowCount).toBe(2);
    expect((await database.query('insert into counted values (4), (5)')).rowCount).toBe(2);
    expect((await database.query('delete from counted')).rowCount).toBe(5);
  });

  test('an error of Postgres carries its SQLSTATE and what it is about', async () => {
    await database.script('create table unique_rows (id int constraint unique_rows_key primary key)');
    await database.query('insert into unique_rows values (1)');
    await expect(database.query('insert into unique_rows values (1)')).rejects.toMatchObject({
      name: 'SqlError',
      code: '23505',
      constraint: 'unique_rows_key',
      table: 'unique_rows',
    });
    await expect(database.query('selec 1')).rejects.toMatchObject({
      name: 'SqlError',
      code: '42601',
      position: '1',
    });
  });

  test('more values than the protocol can count are refused', async () => {
    const values = Array.from({ length: 65_536 }, () => 1);
    await expect(database.query('select 1', values)).rejects.toMatchObject({
      code: 'invalid-input',
      field: 'values',
    });
  });

  test('a query is one statement', async () => {
    await expect(database.query('select 1; select 2')).rejects.toMatchObject({ code: '42601' });
  });
});
