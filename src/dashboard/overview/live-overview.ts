/**
 * The overview as the server tells it once a second, and the last five minutes of it. The stream is opened once for the
 * whole page, so that the charts keep their past while the reader looks at something else.
 */
import { computed, signal } from '@preact/signals';
import { call, asProblem, type ApiProblem } from '../api.js';
import type { Overview, Readiness, RunningOverview } from '../api-types.js';
import { openStream, type StreamState } from '../stream.js';

export const windowSeconds = 300;

export interface Startup {
  readonly stage: string;
  readonly done: number;
  /** 0 while it is not known. */
  readonly total: number;
}

export const samples = signal<readonly RunningOverview[]>([]);
export const overview = computed(() => samples.value.at(-1));
export const connection = signal<StreamState>('connecting');
/** How far the server has started, while it has nothing to show yet. */
export const startup = signal<Startup | undefined>(undefined);
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
    const problem = asProblem(error);
    if (problem.code === 'not-ready') await askReadiness();
    else overviewProblem.value = problem;
  }
}

async function askReadiness(): Promise<void> {
  try {
    const { stage, progress } = await call<Readiness>('/ready', { alsoAnswer: 503 });
    startup.value = { stage, done: progress?.done ?? 0, total: progress?.total ?? 0 };
    overviewProblem.value = undefined;
  } catch (error) {
    overviewProblem.value = asProblem(error);
  }
}

function takeSample(sample: Overview): void {
  overviewProblem.value = undefined;
  if (!isRunning(sample)) {
    startup.value = sample.demo ?? { stage: 'starting', done: 0, total: 0 };
    return;
  }
  startup.value = undefined;
  const last = samples.value.at(-1);
  if (last !== undefined && sample.now <= last.now) return;
  // A younger process counts from zero again: its totals cannot be compared with those before.
  const kept = last !== undefined && sample.uptimeMs < last.uptimeMs ? [] : samples.value;
  const oldest = sample.now - (windowSeconds + 5) * 1_000;
  samples.value = [...kept.filter((earlier) => earlier.now >= oldest), sample];
}

function isRunning(sample: Overview): sample is RunningOverview {
  return sample.queues !== null && sample.feed !== null && sample.notify !== null;
}
