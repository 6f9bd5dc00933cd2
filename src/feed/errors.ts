/** The feed's error codes: what it throws beside those of the ground. */
import { errorFactory, type ErrorTable } from '../errors.js';

export const feedErrors = {
  'account-unknown': { status: 404, meaning: 'The account does not exist, or has been erased.' },
  'account-erased': {
    status: 409,
    meaning: 'An erased account of this id is still being cleaned up; try again later.',
  },
  'follow-self': {
    status: 422,
    meaning: 'An account cannot follow itself; its own posts are in its home anyway.',
  },
  'follow-blocked': {
    status: 409,
    meaning: 'One of the two accounts blocks the other; nothing has changed.',
  },
  'block-self': { status: 422, meaning: 'An account can neither block nor mute itself.' },
  'post-unknown': {
    status: 404,
    meaning: 'The post does not exist, has been deleted, or may not be seen by this account.',
  },
  'post-not-own': { status: 403, meaning: 'The post is by another author than the one who was given.' },
  'repost-refused': {
    status: 422,
    meaning:
      'Only public posts and one’s own can be reposted, and none of an account with a block in between.',
  },
  'cursor-invalid': {
    status: 422,
    meaning: 'The cursor was not made by this list, or has been changed; begin without one.',
  },
  'cursor-expired': {
    status: 410,
    meaning: 'The ranking that this cursor points into is older than 10 minutes; begin without one.',
  },
  'ranking-missing': {
    status: 422,
    meaning: 'A ranked home was asked for and no ranking hook is configured.',
  },
  'ranking-failed': {
    status: 500,
    meaning: 'The ranking hook threw, or did not answer a list of candidates.',
  },
  'timelines-unavailable': {
    status: 503,
    meaning:
      'The Redis that keeps the timelines cannot be reached; homes are read from the posts meanwhile, and the work is tried again.',
  },
  'timelines-in-doubt': {
    status: 503,
    meaning:
      'The Redis that keeps the timelines has come back as another one; what it may have lost is written again first.',
  },
  'timelines-elsewhere': {
    status: 500,
    meaning:
      'Another process of this feed keeps its timelines in another Redis; all must be given the same one.',
  },
} as const satisfies ErrorTable;

export const feedError = errorFactory(feedErrors);
