/**
 * The overview as the server tells it once a second, and the last five minutes of it. The stream is opened once for the
 * whole page, so that the charts keep their past while the reader looks at something else.
 */
import { computed, signal } from '@preact/signals';
import { call, asProblem, type ApiProblem } from '../api.js';
import type { Overview } from '../api-types.js';
import { openStream, type StreamState } from '../stream.js';

export const windowSeconds = 300;

export const samples = signal<readonly Overview[]>([]);
export const overview = computed(() => samples.value.at(-1));
export const connection = signal<StreamState>('connecting');
/** Why there is no overview; undefined as soon as there is one. */
export const overviewProblem = signal<ApiProblem | undefined>(undefined);

export function startOverview(): void {
  openStream({
    path: '/v1/events',
    event: 'overview',
    onEvent: (data) => takeSample(JSON.parse(data) as Overview),
    onState: (state) => {
      connection.value = state;
      // A stream tells nothing about why it failed; the same address without a stream does.
      if (state === 'lost') void askOnce();
    },
  });
  void askOnce();
}

export async function askOnce(): Promise<void> {
  try {
    takeSample(await call<Overview>('/v1/overview'));
  } catch (error) {
    overviewProblem.value = asProblem(error);
  }
}

function takeSample(sample: Overview): void {
  overviewProblem.value = undefined;
  const last = samples.value.at(-1);
  if (last !== undefined && sample.now <= last.now) return;
  // A younger process counts from zero again: its totals cannot be compared with those before.
  const kept = last !== undefined && sample.uptimeMs < last.uptimeMs ? [] : samples.value;
  const oldest = sample.now - (windowSeconds + 5) * 1_000;
  samples.value = [...kept.filter((earlier) => earlier.now >= oldest), sample];
}
