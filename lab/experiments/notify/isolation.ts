/**
 * How long a code waits while promotions fill the pool: 1,200 slots, 60 of them the floor of codes, which come by SMS at
 * 20 a second while promotions go by push. Waiting is from the acknowledged send to the call of the provider. Providers are
 * in this process and do nothing but take their time; in one case codes go through the SMPP adapter to an SMSC on loopback.
 */
import type { AttemptOutcome, Provider } from '../../../src/notify/index.js';
import type { Experiment, ExperimentContext, Figure, Report } from '../../experiment.js';
import { percentile } from '../../statistics.js';
import { openEngine, until, withLabServer, type LabServer } from './engine.js';
import { sleep, smsInProcess, smsOverSmpp } from './isolation-sms.js';

const slots = 1_200;
const codesPerSecond = 20;
/** What a code may wait. */
const waitMsMax = 1_000;

interface Case {
  readonly name: string;
  readonly push: (signal: AbortSignal) => Promise<AttemptOutcome>;
  /** Promotions that wait when the codes begin to come: enough to fill the pool until they end. */
  readonly promotions: number;
  readonly pushTimeoutMs: number;
  readonly smsMs: number;
  /** Codes go over a socket. Default: they do not. */
  readonly overSmpp?: boolean;
  readonly floors: boolean;
  readonly seconds: number;
  /** Whether the promise is made here; else it stands beside it to show why. */
  readonly isPromised: boolean;
}

const answersIn =
  (ms: number) =>
  async (signal: AbortSignal): Promise<AttemptOutcome> => {
    await sleep(ms, signal);
    return { kind: 'sent' };
  };
const neverAnswers = async (signal: AbortSignal): Promise<AttemptOutcome> => {
  await sleep(600_000, signal);
  return { kind: 'ambiguous', detail: 'timeout', unanswered: true };
};
/** Fails after 2 s; the engine tries again later and the slot is free meanwhile. */
const failsIn2s = async (signal: AbortSignal): Promise<AttemptOutcome> => {
  await sleep(2_000, signal);
  return { kind: 'not-accepted', detail: 'throttled' };
};
/** The same with the retries inside: four tries of 2 s, and 1, 2 and 4 s of sleep between them in the slot. */
const sleepsInItsBackoff = async (signal: AbortSignal): Promise<AttemptOutcome> => {
  for (const pauseMs of [1_000, 2_000, 4_000, 0]) {
    await sleep(2_000, signal);
    await sleep(pauseMs, signal);
  }
  return { kind: 'not-accepted', detail: 'throttled' };
};

/** In groups that run at the same time, each on an engine of its own. */
function casesOf(quick: boolean): readonly (readonly Case[])[] {
  const long = quick ? 5 : 30;
  const healthy = {
    push: answersIn(2_000),
    pushTimeoutMs: 10_000,
    promotions: long * 600 + 1_200,
    floors: true,
    seconds: long,
  };
  const dead = {
    push: neverAnswers,
    promotions: 2_400,
    pushTimeoutMs: 10_000,
    smsMs: 200,
    seconds: quick ? 5 : 9,
  };
  return [
    [{ ...healthy, name: 'healthy', smsMs: 200, isPromised: true, seconds: quick ? 4 : 30 }],
    [
      { ...dead, name: 'push never answers', floors: true, isPromised: true },
      { ...healthy, name: 'SMS 2.5 s a call', smsMs: 2_500, isPromised: true },
    ],
    [
      { ...healthy, name: 'SMS 3.5 s a call', smsMs: 3_500, isPromised: true },
      {
        ...dead,
        name: 'push never answers, codes over SMPP',
        floors: true,
        overSmpp: true,
        isPromised: true,
      },
    ],
    [
      { ...dead, name: 'push never answers, no floor', floors: false, isPromised: false },
      {
        ...dead,
        name: 'push fails, tried again later, no floor',
        push: failsIn2s,
        floors: false,
        isPromised: false,
      },
      {
        ...dead,
        name: 'push fails, worker sleeps 1, 2, 4 s, no floor',
        push: sleepsInItsBackoff,
        pushTimeoutMs: 20_000,
        floors: false,
        isPromised: false,
      },
      {
        ...dead,
        name: 'SMS 10 s a call, push never answers',
        smsMs: 10_000,
        floors: true,
        isPromised: false,
      },
    ],
  ];
}

interface Result {
  readonly one: Case;
  readonly waitsMs: readonly number[];
  readonly codes: number;
  readonly expired: number;
  readonly promotionsCalled: number;
}

async function runCase(lab: LabServer, one: Case, index: number): Promise<Result> {
  const { database } = await lab.open({ poolMax: 10 });
  const sms = await (one.overSmpp === true ? smsOverSmpp : smsInProcess)(one.smsMs);
  let promotionsCalled = 0;
  const push: Provider = {
    name: 'push',
    channel: 'push',
    platform: 'fcm',
    timeoutMs: one.pushTimeoutMs,
    attempt: (_, { signal }) => {
      promotionsCalled += 1;
      return one.push(signal);
    },
  };
  const engine = await openEngine({ database, suffix: `case_${index}`, providers: [push, sms.provider] });
  const to = [{ channel: 'push', address: 'token', details: { platform: 'fcm' } }] as const;
  for (let from = 0; from < one.promotions; from += 500) {
    const count = Math.min(500, one.promotions - from);
    const requests = Array.from({ length: count }, (_, offset) => ({
      user: 'u',
      key: `p${from + offset}`,
      data: { what: 'x' },
      to,
    }));
    await engine.notify.sendMany('promo', requests);
  }
  const worker = engine.notify.worker({ slots, floors: one.floors });
  await worker.start();
  await until('promotions fill the pool', 60_000, () => promotionsCalled >= slots - 60);
  const acknowledged = new Map<string, number>();
  const sends: Promise<void>[] = [];
  const codes = one.seconds * codesPerSecond;
  const beginsAtMs = performance.now();
  for (let code = 0; code < codes; code += 1) {
    const dueMs = beginsAtMs + (code / codesPerSecond) * 1_000 - performance.now();
    if (dueMs > 0) await new Promise((resolve) => setTimeout(resolve, dueMs));
    const number = String(100_000 + code);
    const request = {
      user: `u${code}`,
      key: 'login',
      data: { code: number },
      to: [{ channel: 'sms', address: '+41791234567' } as const],
    };
    sends.push(
      engine.notify
        .send('otp', request)
        .then(() => void acknowledged.set(`Your code is ${number}`, performance.now())),
    );
  }
  await Promise.all(sends);
  const calledWhileCodesCame = promotionsCalled;
  await until('every code is called or has expired', 60_000, async () => {
    const { waiting, expired } = await engine.notify.ledger({ kind: 'otp' });
    return sms.called() + expired >= codes || waiting === 0;
  });
  const { expired } = await engine.notify.ledger({ kind: 'otp' });
  // What never was called has waited until now; a call that began before its acknowledgement came has not waited.
  const nowMs = performance.now();
  const waitsMs = [...acknowledged].map(([text, atMs]) =>
    Math.max(0, (sms.calledAtMs(text) ?? nowMs) - atMs),
  );
  await worker.stop({ deadlineMs: 0 });
  await engine.stop();
  await sms.stop();
  return { one, waitsMs, codes, expired, promotionsCalled: calledWhileCodesCame };
}

async function run({ quick, tell }: ExperimentContext): Promise<Report> {
  return withLabServer(async (lab) => {
    const results: Result[] = [];
    let index = 0;
    for (const group of casesOf(quick)) {
      const measured = await Promise.all(group.map((one) => runCase(lab, one, index++)));
      for (const { one, waitsMs } of measured)
        tell(`${one.name}: p99 ${Math.round(percentile(waitsMs, 0.99))} ms`);
      results.push(...measured);
    }
    return reportOf(results, lab.durability);
  });
}

function reportOf(results: readonly Result[], durability: string): Report {
  const p99Of = ({ waitsMs }: Result): number => Math.round(percentile(waitsMs, 0.99));
  const rows = results.map((result): Figure[] => {
    const { one, waitsMs, codes, expired, promotionsCalled } = result;
    const p50 = Math.round(percentile(waitsMs, 0.5));
    return [
      one.name,
      one.floors ? '60 and borrowing' : 'none',
      codes,
      p50,
      p99Of(result),
      expired,
      promotionsCalled,
    ];
  });
  const promised = results.filter(({ one }) => one.isPromised);
  const late = promised.filter((result) => p99Of(result) >= waitMsMax);
  const noFloor = results.find(({ one }) => one.name === 'push never answers, no floor');
  const isNeeded = noFloor !== undefined && p99Of(noFloor) >= waitMsMax;
  const worst = Math.max(...promised.map(p99Of));
  return {
    tables: [
      {
        columns: ['case', 'floor', 'codes', 'p50 ms', 'p99 ms', 'expired', 'promotions called meanwhile'],
        rows,
      },
    ],
    figures: Object.fromEntries(
      results.flatMap((result) => [
        [`${result.one.name}: p99 ms`, p99Of(result)],
        [`${result.one.name}: expired`, result.expired],
      ]),
    ),
    reference: {
      'codes wait at most': `${waitMsMax} ms (p99) with floor and borrowing`,
      'behind a worker that sleeps in its backoff': 'up to 15 s',
      'what 60 slots carry alone': '20 codes/s at 3.0 s a call',
    },
    durability,
    holds: late.length === 0 && isNeeded,
    verdict:
      late.length > 0
        ? late.map((result) => `${result.one.name}: p99 ${p99Of(result)} ms`).join('; ')
        : `codes wait at most ${worst} ms (p99) with floor and borrowing; without a floor ${noFloor === undefined ? '-' : p99Of(noFloor)} ms`,
  };
}

export const isolation: Experiment = {
  name: 'isolation',
  shows: 'how long a code waits while promotions fill the pool, with floor and without',
  run,
};
