/**
 * A live line chart with its values in words beside it: the picture is one image to a screen reader, the legend is the
 * table of what it shows (now, or where the pointer stands).
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { formatClock } from './format.js';

export interface ChartSeries {
  readonly label: string;
  /** Number of the palette colour, 1 to 4. */
  readonly color: 1 | 2 | 3 | 4;
  readonly values: readonly (number | null)[];
}

export interface ChartProps {
  readonly title: string;
  /** Said after the title: `per second`, `seconds`. */
  readonly unit: string;
  /** Unix seconds, ascending. */
  readonly times: readonly number[];
  readonly series: readonly ChartSeries[];
  readonly format: (value: number) => string;
  /** Distances that the lines of the grid may have; default: 1, 2 and 5 times a power of ten. */
  readonly steps?: readonly number[];
  readonly windowSeconds: number;
}

const heightPixels = 150;
/** One pointer over all charts: the second under it is marked in each. */
const pointerGroup = uPlot.sync('overview');

export function Chart(props: ChartProps) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const [pointed, setPointed] = useState<number | null>(null);
  const palette = usePalette();

  useEffect(() => {
    const holder = frame.current;
    if (holder === null) return;
    const made = new uPlot(optionsOf(holder, latest, setPointed), dataOf(latest.current), holder);
    plot.current = made;
    const observer = new ResizeObserver(() =>
      made.setSize({ width: holder.clientWidth, height: heightPixels }),
    );
    observer.observe(holder);
    return () => {
      observer.disconnect();
      pointerGroup.unsub(made);
      made.destroy();
    };
  }, [palette, props.series.length]);

  useEffect(() => {
    plot.current?.setData(dataOf(props));
  }, [props.times]);

  const index = pointed !== null && pointed < props.times.length ? pointed : props.times.length - 1;
  const shownTime = props.times[index];
  return (
    <figure class="chart">
      <figcaption>
        <h3>
          {props.title} <span class="unit">{props.unit}</span>
        </h3>
        {pointed !== null && shownTime !== undefined && (
          <time class="muted">{formatClock(shownTime * 1_000)}</time>
        )}
      </figcaption>
      <dl class="legend">
        {props.series.map((series) => (
          <div key={series.label}>
            <dt>
              <span class={`swatch swatch-${series.color}`} aria-hidden="true" />
              {series.label}
            </dt>
            <dd>{formatOrDash(series.values[index], props.format)}</dd>
          </div>
        ))}
      </dl>
      <div
        ref={frame}
        class="plot"
        role="img"
        aria-label={`${props.title}, ${props.unit}, over the last minutes`}
      />
    </figure>
  );
}

function formatOrDash(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? '—' : format(value);
}

function dataOf(props: ChartProps): uPlot.AlignedData {
  return [[...props.times], ...props.series.map((series) => [...series.values])];
}

function optionsOf(
  holder: HTMLElement,
  latest: { readonly current: ChartProps },
  onPointer: (index: number | null) => void,
): uPlot.Options {
  const style = getComputedStyle(holder);
  const color = (name: string): string => style.getPropertyValue(name).trim();
  const axis = {
    stroke: color('--text-muted'),
    font: `11px ${style.fontFamily}`,
    grid: { stroke: color('--line'), width: 1 },
    ticks: { show: false },
  };
  return {
    width: holder.clientWidth,
    height: heightPixels,
    padding: [8, 4, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false }, sync: { key: pointerGroup.key } },
    hooks: { setCursor: [(chart) => onPointer(chart.cursor.idx ?? null)] },
    scales: {
      x: { time: true, range: (_chart, _min, max) => [max - spanSeconds(latest.current), max] },
      y: { range: (_chart, _min, max) => [0, Math.max(max * 1.1, 1)] },
    },
    axes: [
      {
        ...axis,
        size: 24,
        space: 90,
        grid: { show: false },
        values: (_chart, ticks) => ticks.map((tick) => formatClock(tick * 1_000)),
      },
      {
        ...axis,
        size: (_chart, labels) => axisWidth(labels),
        space: 30,
        ...(latest.current.steps && { incrs: [...latest.current.steps] }),
        values: (_chart, ticks) => ticks.map((tick) => latest.current.format(tick)),
      },
    ],
    series: [
      {},
      ...latest.current.series.map((series) => ({
        label: series.label,
        stroke: color(`--series-${series.color}`),
        width: 1.5,
        points: { show: false },
      })),
    ],
  };
}

/** As wide as its longest label, so that none is cut off; at least the width that most charts need, so that they stand in line. */
function axisWidth(labels: readonly string[] | null): number {
  const characters = Math.max(0, ...(labels ?? []).map((label) => label.length));
  return Math.max(52, 12 + characters * 6);
}

/** At least a minute, so that the first seconds do not stretch over the whole width. */
function spanSeconds({ times, windowSeconds }: ChartProps): number {
  const first = times[0] ?? 0;
  const last = times.at(-1) ?? 0;
  return Math.min(Math.max(last - first, 60), windowSeconds);
}

/** Changes when the system turns light or dark: a canvas does not follow the style sheet by itself. */
function usePalette(): string {
  const [isDark, setDark] = useState(() => matchMedia('(prefers-color-scheme: dark)').matches);
  useEffect(() => {
    const query = matchMedia('(prefers-color-scheme: dark)');
    const onChange = (): void => setDark(query.matches);
    query.addEventListener('change', onChange);
    return () => query.removeEventListener('change', onChange);
  }, []);
  return isDark ? 'dark' : 'light';
}
