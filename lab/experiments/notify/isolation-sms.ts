/**
 * Where the codes of `isolation` go: a provider in this process that does nothing but take its time, or the SMPP adapter
 * and a real SMSC on loopback. Both tell when each text was first called, by the clock of this process.
 */
import { createSmppProvider, type AttemptOutcome, type Provider } from '../../../src/notify/index.js';
import { startSmppCounterpart } from '../../../src/testing/index.js';

export interface SmsSide {
  readonly provider: Provider;
  /** On the monotonic clock; undefined while it has not been called. */
  calledAtMs(text: string): number | undefined;
  /** Texts that have been called. */
  called(): number;
  stop(): Promise<void>;
}

const timeoutMs = 15_000;

export const sleep = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
  });

export function smsInProcess(callMs: number): SmsSide {
  const calls = new Map<string, number>();
  return {
    provider: {
      name: 'sms',
      channel: 'sms',
      timeoutMs,
      async attempt({ content }, { signal }): Promise<AttemptOutcome> {
        const text = String(content['text']);
        if (!calls.has(text)) calls.set(text, performance.now());
        await sleep(callMs, signal);
        return { kind: 'sent' };
      },
    },
    calledAtMs: (text) => calls.get(text),
    called: () => calls.size,
    async stop() {},
  };
}

/** Called is when the SMSC has read the submit_sm: the adapter, its session and the socket are within the wait. */
export async function smsOverSmpp(callMs: number): Promise<SmsSide> {
  const counterpart = await startSmppCounterpart();
  counterpart.script({ next: () => ({ kind: 'late', delayMs: callMs }) });
  const { port, messages } = counterpart;
  const provider = createSmppProvider({
    name: 'sms',
    host: '127.0.0.1',
    port,
    systemId: 'lab',
    password: 'lab',
    from: 'Lab',
    timeoutMs,
  });
  return {
    provider,
    calledAtMs: (text) => messages.find((message) => message.text === text)?.atMs,
    called: () => new Set(messages.map(({ text }) => text)).size,
    async stop() {
      await provider.stop?.();
      await counterpart.stop();
    },
  };
}
