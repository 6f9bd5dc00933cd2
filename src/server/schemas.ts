/** The pieces of the HTTP contract that several routes share; the OpenAPI document is made of the same objects. */
import { Type, type TSchema } from 'typebox';

export const problemSchema = Type.Object(
  {
    type: Type.String(),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String(),
    code: Type.String({ description: 'Stable; listed in docs/reference/errors.md.' }),
    field: Type.Optional(Type.String({ description: 'The field at fault.' })),
    value: Type.Optional(Type.String({ description: 'What was given, shortened.' })),
    expected: Type.Optional(Type.String({ description: 'What was expected.' })),
    retryAfterMs: Type.Optional(
      Type.Number({ description: 'When it may be tried again; also as the header Retry-After.' }),
    ),
    requestId: Type.Optional(Type.String()),
  },
  { $id: 'Problem', description: 'An error (RFC 9457).' },
);

const problemRef = Type.Unsafe({ $ref: 'Problem#' });

/** The answers of a route: its own on success, problem+json otherwise. */
export function answers<S extends TSchema>(status: 200 | 201, schema: S) {
  return { [status]: schema, '4xx': problemRef, '5xx': problemRef } as const;
}

export const accountParams = Type.Object({
  account: Type.String({ description: "The caller's own id, percent-encoded; at most 128 characters." }),
});
export const relationParams = Type.Object({ account: Type.String(), other: Type.String() });

export const pageQuery = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 100, description: 'Items of the page; default 20.' }),
    ),
    after: Type.Optional(Type.String({ description: 'Cursor `next` of the page before.' })),
  },
  { additionalProperties: false },
);

export const limitDefault = 20;

/** No control characters: what is a key in a database, a line in a log and a word in a header all the same. */
export const linePattern = '^[^\\u0000-\\u001f\\u007f-\\u009f]+$';

/** A line of text. */
export function line(maxLength: number, description?: string) {
  return Type.String({
    minLength: 1,
    maxLength,
    pattern: linePattern,
    ...(description === undefined ? {} : { description }),
  });
}
