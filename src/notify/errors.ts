/** The error codes of notifications in one table; docs/reference/errors.md is made from it. */
import { errorFactory, type ErrorTable } from '../errors.js';

export const notifyErrors = {
  'kind-unknown': { status: 404, meaning: 'No kind of this name is defined.' },
  'kind-required': { status: 409, meaning: 'The kind is required: it cannot be switched off.' },
  'notification-unknown': {
    status: 404,
    meaning: 'No notification of this id, or of this user, kind and key, is known.',
  },
  'send-limited': {
    status: 429,
    meaning:
      'The kind has a limit of notifications for a user or an address, and it is reached; `retryAfterMs` tells when it is not any more.',
  },
  'provider-unknown': {
    status: 404,
    meaning: 'No provider of this name is configured, or it gives no receipts.',
  },
  'provider-missing': { status: 500, meaning: 'A channel of a kind has no provider; the error names both.' },
  'template-failed': {
    status: 422,
    meaning:
      'A template could not be rendered with this data; the error names kind, channel and field, never the data.',
  },
  'token-invalid': {
    status: 403,
    meaning: 'The unsubscribe token was not made by this installation, or has been changed.',
  },
  'campaign-unknown': { status: 404, meaning: 'No campaign of this id is known.' },
  'campaign-ended': {
    status: 409,
    meaning: 'The campaign has been canceled or has finished; it takes no recipients.',
  },
} as const satisfies ErrorTable;

export const notifyError = errorFactory(notifyErrors);
