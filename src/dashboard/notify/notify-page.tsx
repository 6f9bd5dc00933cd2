/** Notifications at a glance: the ledger whole and by kind, which providers may be called, and the way to single ones. */
import { call } from '../api.js';
import { formatCount, formatRate, formatSeconds } from '../format.js';
import { EmptyNotice, LoadingNotice, ProblemNotice } from '../notice.js';
import { Chart } from '../chart.js';
import { overview, samples, windowSeconds } from '../overview/live-overview.js';
import { ratesOf, timesOf } from '../overview/series.js';
import { ambiguousAttempts, notificationsSent, unsuccessful } from '../overview/totals.js';
import { useRepeated, useResource } from '../resource.js';
import { campaignsRoute, deliveriesRoute, formatRoute } from '../route.js';
import { NotificationPicker } from './notification-picker.js';
import { endStates, type Kind, type Ledger, type Provider } from './types.js';

const everyMs = 5_000;
/** Counting goes over every delivery that is kept: the server rests so many times as long as it took. */
const restFactor = 20;

interface Sums {
  readonly kinds: readonly Kind[];
  readonly total: Ledger;
  readonly byKind: ReadonlyMap<string, Ledger>;
  /** When this may be counted again, on the monotonic clock. */
  readonly againAtMs: number;
}

async function readSums(signal: AbortSignal): Promise<Sums> {
  const startedAtMs = performance.now();
  const [{ kinds }, total] = await Promise.all([
    call<{ kinds: readonly Kind[] }>('/v1/kinds', { signal }),
    call<Ledger>('/v1/ledger', { signal }),
  ]);
  const ledgers = await Promise.all(
    kinds.map(
      async ({ name }) =>
        [name, await call<Ledger>('/v1/ledger', { query: { kind: name }, signal })] as const,
    ),
  );
  const endedAtMs = performance.now();
  const againAtMs = endedAtMs + restFactor * (endedAtMs - startedAtMs);
  return { kinds, total, byKind: new Map(ledgers), againAtMs };
}

export function NotifyPage() {
  const sums = useResource<Sums>('sums', readSums);
  const providers = useResource<{ providers: readonly Provider[] }>('providers', (signal) =>
    call('/v1/providers', { signal }),
  );
  useRepeated(() => {
    if (!sums.loading && performance.now() >= (sums.value?.againAtMs ?? 0)) void sums.reload();
    if (!providers.loading) void providers.reload();
  }, everyMs);
  return (
    <>
      <h1 tabIndex={-1}>Notify</h1>
      {sums.problem !== undefined && (
        <ProblemNotice problem={sums.problem} onRetry={() => void sums.reload()} />
      )}
      {sums.value === undefined ? (
        sums.loading && <LoadingNotice what="the ledger" />
      ) : (
        <>
          <LedgerSection total={sums.value.total} />
          <Rates />
          <section aria-labelledby="notify-kinds">
            <h2 id="notify-kinds">Kinds</h2>
            <KindTable sums={sums.value} />
          </section>
        </>
      )}
      <section aria-labelledby="notify-providers">
        <h2 id="notify-providers">Providers</h2>
        {providers.problem !== undefined && (
          <ProblemNotice problem={providers.problem} onRetry={() => void providers.reload()} />
        )}
        {providers.value === undefined ? (
          providers.loading && <LoadingNotice what="the providers" />
        ) : (
          <ProviderTable providers={providers.value.providers} />
        )}
      </section>
      <section aria-labelledby="notify-one">
        <h2 id="notify-one">One notification</h2>
        <NotificationPicker />
        <p>
          <a href={formatRoute(deliveriesRoute())}>All deliveries, newest first</a>,{' '}
          <a href={formatRoute(campaignsRoute())}>all campaigns</a>
        </p>
      </section>
    </>
  );
}

function LedgerSection({ total }: { readonly total: Ledger }) {
  const notifyQueues = overview.value?.queues.filter(({ queue }) => queue.startsWith('notify-')) ?? [];
  const oldest = Math.max(0, ...notifyQueues.map(({ lagSeconds }) => lagSeconds));
  const sum = total.waiting + endStates.reduce((all, state) => all + total[state], 0);
  return (
    <section aria-labelledby="notify-ledger">
      <h2 id="notify-ledger">Ledger</h2>
      <dl class="figures">
        <Figure name="Accepted" value={total.accepted} note="deliveries that are kept" />
        <Figure name="Waiting" value={total.waiting} note={`oldest due ${formatSeconds(oldest)}`} />
        {endStates.map((state) => (
          <Figure key={state} name={capital(state)} value={total[state]} note={notes[state]} />
        ))}
      </dl>
      <p class={sum === total.accepted ? 'muted' : 'attention'}>
        {sum === total.accepted
          ? 'Waiting and the five ends add up to what was accepted.'
          : `The parts add up to ${formatCount(sum)}, not to what was accepted.`}
      </p>
    </section>
  );
}

function Rates() {
  const history = samples.value;
  return (
    <section aria-labelledby="notify-rates">
      <h2 id="notify-rates">Last five minutes</h2>
      <Chart
        times={timesOf(history)}
        windowSeconds={windowSeconds}
        unit="per second"
        format={formatRate}
        title="Deliveries"
        series={[
          { label: 'sent', color: 1, values: ratesOf(history, notificationsSent) },
          { label: 'failed or expired', color: 4, values: ratesOf(history, unsuccessful) },
          { label: 'ambiguous calls', color: 3, values: ratesOf(history, ambiguousAttempts) },
        ]}
      />
    </section>
  );
}

const notes: Readonly<Record<(typeof endStates)[number], string>> = {
  sent: 'the provider said so',
  failed: 'refused, or attempts used up',
  expired: 'past their deadline',
  suppressed: 'switched off, digested, canceled',
  ambiguous: 'at most once, nobody knows',
};

const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

function Figure({
  name,
  value,
  note,
}: {
  readonly name: string;
  readonly value: number;
  readonly note: string;
}) {
  return (
    <div class="figure">
      <dt>{name}</dt>
      <dd>
        <span class="figure-value">{formatCount(value)}</span>
        <span class="figure-note">{note}</span>
      </dd>
    </div>
  );
}

function KindTable({ sums }: { readonly sums: Sums }) {
  if (sums.kinds.length === 0) {
    return (
      <EmptyNotice title="No kind is defined.">
        Kinds and providers stand in headgate.config.json; <code>headgate notify check</code> reads it.
      </EmptyNotice>
    );
  }
  return (
    <div class="table-frame" role="region" aria-label="Kinds, scrolls sideways" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Kind</th>
            <th scope="col">Channels</th>
            <th scope="col">Promise</th>
            <th scope="col" class="number">
              Deadline
            </th>
            {['accepted', 'waiting', ...endStates].map((column) => (
              <th key={column} scope="col" class="number">
                {capital(column)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sums.kinds.map((kind) => (
            <tr key={kind.name}>
              <th scope="row">
                <a href={formatRoute({ ...deliveriesRoute(), kind: kind.name })}>{kind.name}</a>
              </th>
              <td>{kind.channels.length === 0 ? 'not defined here' : kind.channels.join(', ')}</td>
              <td>{promiseOf(kind)}</td>
              <td class="number">{formatSeconds(kind.deadlineMs / 1_000)}</td>
              {(['accepted', 'waiting', ...endStates] as const).map((column) => (
                <td key={column} class="number">
                  {formatCount(sums.byKind.get(kind.name)?.[column] ?? 0)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function promiseOf({ delivery, priority, floor, required, secret, digest, limits }: Kind): string {
  const more = [
    priority,
    ...(floor > 0 ? [`floor ${floor}`] : []),
    ...(required ? ['required'] : []),
    ...(secret ? ['secret'] : []),
    ...(digest ? ['digest'] : []),
    ...limits.map(({ per, count, windowMs }) => `${count} a ${per} in ${formatSeconds(windowMs / 1_000)}`),
  ];
  return `${delivery.replaceAll('-', ' ')} · ${more.join(', ')}`;
}

function ProviderTable({ providers }: { readonly providers: readonly Provider[] }) {
  return (
    <div class="table-frame" role="region" aria-label="Providers, scrolls sideways" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Provider</th>
            <th scope="col">Channel</th>
            <th scope="col">Breaker</th>
          </tr>
        </thead>
        <tbody>
          {providers.map(({ name, channel, open, reason }) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{channel}</td>
              <td class={open ? '' : 'attention'}>
                {open ? 'may be called' : `left alone: ${reason ?? 'no reason is known'}`}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
