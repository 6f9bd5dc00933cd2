/** What a screen reader is told after an action or a change that is not under the focus. */
import { signal } from '@preact/signals';

export const announcement = signal('');

/** Says `text` in the page's live region; the same text twice is said twice. */
export function announce(text: string): void {
  // A live region speaks only when its text changes, so a repeat gets an invisible difference.
  announcement.value = announcement.value === text ? `${text}\u00A0` : text;
}
