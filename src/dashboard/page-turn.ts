/** Turning to another page of a list begins at its top, for eyes and for keyboard alike. */
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

/** `page` names the page of the list; give the answer to the element (with tabIndex -1) that the list begins with. */
export function usePageTurn(page: string): RefObject<HTMLDivElement | null> {
  const top = useRef<HTMLDivElement>(null);
  const shown = useRef(page);
  useEffect(() => {
    if (shown.current === page) return;
    shown.current = page;
    top.current?.focus({ preventScroll: true });
    top.current?.scrollIntoView();
  }, [page]);
  return top;
}
