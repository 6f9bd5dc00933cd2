/**
 * A server-sent event stream that stays open: it comes back after a cut, with a growing pause, and rests while the
 * page is hidden (a browser allows six connections to one server, and every open tab would hold some of them).
 */
export type StreamState = 'connecting' | 'live' | 'lost';

export interface StreamOptions {
  readonly path: string;
  readonly event: string;
  readonly onEvent: (data: string) => void;
  readonly onState?: (state: StreamState) => void;
}

const pauseMs = { first: 1_000, max: 5_000 };

/** Opens the stream; the answer closes it for good. */
export function openStream(options: StreamOptions): () => void {
  let source: EventSource | undefined;
  let timer: number | undefined;
  let pause = pauseMs.first;

  const close = (): void => {
    window.clearTimeout(timer);
    source?.close();
    source = undefined;
  };
  const open = (): void => {
    close();
    source = new EventSource(options.path);
    source.addEventListener('open', () => {
      pause = pauseMs.first;
      options.onState?.('live');
    });
    source.addEventListener(options.event, (message) => options.onEvent(message.data as string));
    source.addEventListener('error', () => {
      // The browser's own repeat ends for good at the first answer that is not a stream, so ours replaces it.
      close();
      options.onState?.('lost');
      timer = window.setTimeout(open, pause);
      pause = Math.min(pause * 2, pauseMs.max);
    });
  };
  const onVisibility = (): void => {
    if (document.hidden) close();
    else if (source === undefined) open();
  };

  document.addEventListener('visibilitychange', onVisibility);
  options.onState?.('connecting');
  if (!document.hidden) open();
  return () => {
    document.removeEventListener('visibilitychange', onVisibility);
    close();
  };
}
