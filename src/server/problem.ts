/**
 * Turns every failure of a request into one problem+json answer (RFC 9457) that carries the stable code and, where
 * input was at fault, the field, the value and what was expected. What is not ours stays out of the answer and goes to the log.
 */
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { STATUS_CODES } from 'node:http';
import { describeValue, errorFactory, HeadgateError, type ErrorTable } from '../errors.js';
import type { Log } from '../log.js';
import { validationError } from './validation.js';

export const serverErrors = {
  'invalid-json': { status: 400, meaning: 'The body is not JSON.' },
  'invalid-url': { status: 400, meaning: 'The path or query is not valid percent-encoded UTF-8.' },
  'body-too-large': {
    status: 413,
    meaning: 'The body is larger than the limit of the route (1 MiB unless stated otherwise).',
  },
  'unsupported-media-type': {
    status: 415,
    meaning: 'The body is not application/json, or it is compressed.',
  },
  'not-found': { status: 404, meaning: 'There is no such route.' },
  unauthorized: { status: 401, meaning: 'An API key is needed, and none or an unknown one was sent.' },
  forbidden: {
    status: 403,
    meaning: 'The API key lacks the scope, or the Host or Origin is not this server.',
  },
  'not-ready': { status: 503, meaning: 'The server is starting; /ready tells how far it is.' },
  'key-conflict': {
    status: 409,
    meaning: 'The user, kind and key are known with other content; nothing has changed.',
  },
  'campaign-paused': {
    status: 409,
    meaning: 'The campaign is paused and takes no recipients until it is resumed.',
  },
  'signature-invalid': {
    status: 401,
    meaning: 'The receipt was not signed by the provider that it names.',
  },
  'internal-error': {
    status: 500,
    meaning: 'A fault of the server; the log has it under the same request id.',
  },
} as const satisfies ErrorTable;

export const serverError = errorFactory(serverErrors);

export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: string;
  readonly field?: string;
  readonly value?: string;
  readonly expected?: string;
  readonly retryAfterMs?: number;
  readonly requestId?: string;
}

/** The answer for an error; `requestId` lets a reader find the log line. */
export function problemOf(error: HeadgateError, requestId?: string): Problem {
  return {
    type: `/docs/errors#${error.code}`,
    title: STATUS_CODES[error.status] ?? 'Error',
    status: error.status,
    detail: error.message,
    code: error.code,
    ...(error.field === undefined ? {} : { field: error.field, value: describeValue(error.value) }),
    ...(error.expected === undefined ? {} : { expected: error.expected }),
    ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }),
    ...(requestId === undefined ? {} : { requestId }),
  };
}

function headgateErrorOf(error: FastifyError | Error): HeadgateError | undefined {
  if (error instanceof HeadgateError) return error;
  const code = 'code' in error ? error.code : undefined;
  switch (code) {
    case 'FST_ERR_CTP_INVALID_JSON_BODY':
    case 'FST_ERR_CTP_EMPTY_JSON_BODY':
      return serverError('invalid-json', `the body is not JSON: ${error.message}`, {
        field: 'body',
        expected: 'JSON',
      });
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return serverError('body-too-large', 'the body is larger than the limit of this route', {
        field: 'body',
        expected: 'at most 1 MiB',
      });
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return serverError('unsupported-media-type', 'the body must be application/json', {
        field: 'content-type',
        expected: 'application/json',
      });
    case 'FST_ERR_BAD_URL':
      return serverError('invalid-url', 'the path is not valid percent-encoded UTF-8', {
        field: 'path',
        expected: 'percent-encoded UTF-8',
      });
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return serverError('invalid-json', 'the body is shorter or longer than its Content-Length', {
        field: 'content-length',
      });
    default:
  }
  const status = 'statusCode' in error ? error.statusCode : undefined;
  if (error instanceof SyntaxError || status === 400) {
    return serverError('invalid-json', `the body is not acceptable JSON: ${error.message}`, {
      field: 'body',
      expected: 'JSON',
    });
  }
  return undefined;
}

/** Fastify's error handler: one place where every answer that is not a success is made. */
export function problemHandler(log: Log) {
  return (error: FastifyError, request: FastifyRequest, reply: FastifyReply): void => {
    let known = error.validation
      ? validationError(error.validation, error.validationContext ?? 'body')
      : headgateErrorOf(error);
    if (!known) {
      log.error(
        { err: error, requestId: request.id, method: request.method, route: request.routeOptions?.url },
        'a request failed',
      );
      known = serverError(
        'internal-error',
        'the server failed to answer; its log has the cause under this request id',
      );
    } else if (known.status >= 500 && known.code !== 'not-ready') {
      log.warn(
        { err: known, requestId: request.id, route: request.routeOptions?.url },
        'a request could not be served',
      );
    }
    if (known.retryAfterMs !== undefined)
      void reply.header('retry-after', Math.max(1, Math.ceil(known.retryAfterMs / 1_000)));
    void reply
      .status(known.status)
      .header('content-type', 'application/problem+json; charset=utf-8')
      .send(problemOf(known, request.id));
  };
}
