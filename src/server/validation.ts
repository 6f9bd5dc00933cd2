/**
 * What Ajv found in a request, in the words of the house: the field, the value and what was expected of it, said so that it
 * can be put right without the schema. Only the first finding is told.
 */
import type { FastifySchemaValidationError } from 'fastify';
import { invalidInput, type HeadgateError } from '../errors.js';
import { linePattern } from './schemas.js';

interface Schema {
  readonly const?: unknown;
  readonly type?: string;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, unknown>>;
}

/** As the validators of the server make it, with `verbose`. */
interface Finding extends FastifySchemaValidationError {
  readonly data?: unknown;
  readonly parentSchema?: Schema;
}

const typeNames: Readonly<Record<string, string>> = {
  string: 'a string',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  object: 'an object',
  array: 'an array',
  null: 'null',
};

export function validationError(
  findings: readonly FastifySchemaValidationError[],
  part: string,
): HeadgateError {
  // of a union Ajv tells each branch first, and the union last
  const finding: Finding | undefined = findings.find(({ keyword }) => keyword === 'anyOf') ?? findings[0];
  if (!finding) return invalidInput(part, undefined, 'a valid request');
  const path = finding.instancePath
    .split('/')
    .filter((step) => step !== '')
    .map((step) => decodeURIComponent(step.replaceAll('~1', '/').replaceAll('~0', '~')));
  const named = finding.params['missingProperty'] ?? finding.params['additionalProperty'];
  if (typeof named === 'string') path.push(named);
  const field = path.length > 0 ? path.join('.') : part;
  if (finding.keyword === 'required') return invalidInput(field, undefined, 'a value (it is required)');
  if (finding.keyword === 'additionalProperties') {
    const known = Object.keys(finding.parentSchema?.properties ?? {});
    const list = known.length === 0 ? '' : ` (there are ${known.join(', ')})`;
    const given = (finding.data as Readonly<Record<string, unknown>>)[String(named)];
    return invalidInput(field, given, `no field of this name${list}`);
  }
  return invalidInput(field, finding.data, expectationOf(finding));
}

function expectationOf({ keyword, params, message, parentSchema }: Finding): string {
  const limit = Number(params['limit']);
  switch (keyword) {
    case 'type':
      return String(params['type'])
        .split(',')
        .map((type) => typeNames[type] ?? type)
        .join(' or ');
    case 'anyOf':
      return unionOf(parentSchema?.anyOf ?? []);
    case 'const':
      return JSON.stringify(params['allowedValue']);
    case 'minimum':
      return `a number of at least ${limit}`;
    case 'maximum':
      return `a number of at most ${limit}`;
    case 'minItems':
      return `at least ${counted(limit, 'item')}`;
    case 'maxItems':
      return `at most ${counted(limit, 'item')}`;
    case 'minLength':
      return `at least ${counted(limit, 'character')}`;
    case 'maxLength':
      return `at most ${counted(limit, 'character')}`;
    case 'pattern':
      if (params['pattern'] === linePattern) return 'text without control characters';
  }
  return message?.replace(/^must /, 'it to ').replace(/^it to be /, '') ?? 'a valid value';
}

function unionOf(branches: readonly Schema[]): string {
  const names = branches.map((branch) =>
    branch.const === undefined
      ? (typeNames[branch.type ?? ''] ?? 'another form')
      : JSON.stringify(branch.const),
  );
  return names.length === 0 ? 'a valid value' : `one of ${names.join(', ')}`;
}

function counted(count: number, name: string): string {
  return `${count} ${name}${count === 1 ? '' : 's'}`;
}
