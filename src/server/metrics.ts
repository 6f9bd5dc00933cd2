/**
 * Binds the metric tables of the parts to Prometheus (prom-client): one registry a server, read by /metrics and by the
 * overview. Guarantees that a part declared twice shares its metrics instead of failing.
 */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { MetricDefinition, MetricLabels, MetricsBackend } from '../metrics.js';

export interface Prometheus {
  readonly backend: MetricsBackend;
  readonly contentType: string;
  text(): Promise<string>;
  /** Sum of a counter or gauge over all label sets that contain `labels`; 0 for an unknown name. */
  sum(name: string, labels?: MetricLabels): Promise<number>;
}

type Instrument = Counter | Gauge | Histogram;

function instrumentOf(registry: Registry, name: string, definition: MetricDefinition): Instrument {
  const existing = registry.getSingleMetric(name);
  if (existing) return existing as Instrument;
  const common = { name, help: definition.help, labelNames: [...definition.labels], registers: [registry] };
  if (definition.type === 'counter') return new Counter(common);
  if (definition.type === 'gauge') return new Gauge(common);
  return new Histogram(definition.buckets ? { ...common, buckets: [...definition.buckets] } : common);
}

export function createPrometheus({ processMetrics = true } = {}): Prometheus {
  const registry = new Registry();
  if (processMetrics) collectDefaultMetrics({ register: registry });

  const backend: MetricsBackend = (table) => {
    const instruments = new Map<string, Instrument>();
    for (const [name, definition] of Object.entries<MetricDefinition>(table)) {
      instruments.set(name, instrumentOf(registry, name, definition));
    }
    return {
      add: (name, labels, amount = 1) => (instruments.get(name) as Counter).inc(labels, amount),
      set: (name, labels, value) => (instruments.get(name) as Gauge).set(labels, value),
      observe: (name, labels, value) => (instruments.get(name) as Histogram).observe(labels, value),
    };
  };

  return {
    backend,
    contentType: registry.contentType,
    text: () => registry.metrics(),
    async sum(name, labels = {}) {
      const metric = registry.getSingleMetric(name);
      if (!metric) return 0;
      const { values } = await metric.get();
      return values
        .filter((sample) => Object.entries(labels).every(([key, value]) => sample.labels[key] === value))
        .reduce((total, sample) => total + sample.value, 0);
    },
  };
}
