/**
 * A button that changes something through the API: it cannot be pressed twice at once, says in the live region what
 * came of it, and asks again first where the change cannot be taken back.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import { announce } from './announce.js';
import { asProblem, type ApiProblem } from './api.js';

export interface ActionButtonProps {
  readonly label: string;
  /** Says what it acts on, for readers who do not see the row: `Mute a17`. Default: the label. */
  readonly name?: string;
  /** Said when it is done: `a17 is muted`. */
  readonly done: string;
  readonly action: () => Promise<unknown>;
  readonly onProblem: (problem: ApiProblem | undefined) => void;
  /** The question on the button after the first press; without it the first press acts. */
  readonly confirm?: string;
  readonly class?: string;
}

/** How long the question stays: long enough to read, short enough not to be pressed by accident later. */
const confirmMs = 6_000;

export function ActionButton(props: ActionButtonProps) {
  const [step, setStep] = useState<'ready' | 'asking' | 'busy'>('ready');
  const isMounted = useRef(true);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => () => void (isMounted.current = false), []);
  useEffect(() => {
    if (step !== 'asking') return;
    const timer = window.setTimeout(() => setStep('ready'), confirmMs);
    return () => window.clearTimeout(timer);
  }, [step]);

  const press = async (): Promise<void> => {
    if (step === 'busy') return;
    if (props.confirm !== undefined && step === 'ready') {
      setStep('asking');
      announce(props.confirm);
      return;
    }
    setStep('busy');
    const place = button.current?.closest<HTMLElement>('section, aside');
    props.onProblem(undefined);
    try {
      await props.action();
      announce(props.done);
    } catch (error) {
      props.onProblem(asProblem(error));
    }
    if (isMounted.current) setStep('ready');
    else focusHeading(place);
  };

  const isAsking = step === 'asking';
  const label = isAsking && props.confirm !== undefined ? props.confirm : props.label;
  return (
    <button
      ref={button}
      type="button"
      class={`${props.class ?? ''}${isAsking ? ' danger' : ''}`}
      aria-label={isAsking ? undefined : props.name}
      aria-disabled={step === 'busy'}
      onClick={() => void press()}
    >
      {label}
    </button>
  );
}

/** The row of the button may be gone with it; the reader goes on at the heading of its list instead of at the top. */
function focusHeading(place: HTMLElement | null | undefined): void {
  const isLost = document.activeElement === document.body;
  const heading = place?.querySelector<HTMLElement>('h2');
  if (!isLost || heading === null || heading === undefined) return;
  heading.tabIndex = -1;
  heading.focus();
}
