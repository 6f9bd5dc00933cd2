/** What a page says instead of content: a problem of the API with its code and field, nothing there, or still loading. */
import type { ComponentChildren } from 'preact';
import type { ApiProblem } from './api.js';

/** Shows a problem as the API told it; `onRetry` adds a button. */
export function ProblemNotice({
  problem,
  onRetry,
}: {
  readonly problem: ApiProblem;
  readonly onRetry?: () => void;
}) {
  return (
    <div class="notice notice-problem" role="alert">
      <p class="notice-title">
        {problem.title} <code>{problem.code}</code>
        {problem.status > 0 && <span class="muted"> · HTTP {problem.status}</span>}
      </p>
      {problem.message !== problem.title && <p>{problem.message}</p>}
      {problem.field !== undefined && (
        <dl class="facts">
          <Fact name="Field" text={problem.field} />
          {problem.value !== undefined && <Fact name="Value" text={textOf(problem.value)} />}
          {problem.expected !== undefined && <Fact name="Expected" text={problem.expected} />}
        </dl>
      )}
      {onRetry !== undefined && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function EmptyNotice({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="notice notice-empty">
      <p class="notice-title">{title}</p>
      {children !== undefined && <p>{children}</p>}
    </div>
  );
}

export function LoadingNotice({ what }: { readonly what: string }) {
  return (
    <p class="notice notice-loading" aria-busy="true">
      Reading {what}…
    </p>
  );
}

function Fact({ name, text }: { readonly name: string; readonly text: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <code>{text}</code>
      </dd>
    </div>
  );
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
