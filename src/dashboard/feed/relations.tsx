/** Who the reader follows, is followed by, has muted and blocked; each can be changed from here. */
import { useEffect, useState } from 'preact/hooks';
import { ActionButton } from '../action-button.js';
import { announce } from '../announce.js';
import { apiPath, asProblem, call, type ApiProblem } from '../api.js';
import type { RelationPage } from '../api-types.js';
import { EmptyNotice, LoadingNotice, ProblemNotice } from '../notice.js';
import { formatRoute } from '../route.js';
import { useResource } from '../resource.js';

type Kind = 'following' | 'followers' | 'mutes' | 'blocks';

/** `undo` takes the relation back; a follower can only be ended by a block. */
const kinds: Readonly<
  Record<Kind, { readonly label: string; readonly empty: string; readonly undo?: string }>
> = {
  following: { label: 'Follows', empty: 'Follows nobody.', undo: 'Unfollow' },
  followers: { label: 'Followers', empty: 'Nobody follows this account.' },
  mutes: { label: 'Muted', empty: 'Nobody is muted.', undo: 'Unmute' },
  blocks: { label: 'Blocked', empty: 'Nobody is blocked.', undo: 'Unblock' },
};

const accountsPerPage = '20';

export interface RelationsProps {
  readonly account: string;
  /** Goes up with every change made elsewhere on the page. */
  readonly changes: number;
  readonly onChange: () => Promise<void>;
}

export function Relations({ account, changes, onChange }: RelationsProps) {
  const [kind, setKind] = useState<Kind>('following');
  const [after, setAfter] = useState<string | undefined>(undefined);
  const [problem, setProblem] = useState<ApiProblem | undefined>(undefined);
  const list = useResource<RelationPage>(JSON.stringify([account, kind, after]), (signal) =>
    call(apiPath('accounts', account, kind), { query: { after, limit: accountsPerPage }, signal }),
  );
  useEffect(() => {
    if (changes > 0) void list.reload();
  }, [changes]);
  const show = (next: Kind): void => {
    setKind(next);
    setAfter(undefined);
  };
  return (
    <aside class="column-side" aria-label={`Accounts around ${account}`}>
      <h2>Accounts</h2>
      <FollowForm account={account} onChange={onChange} />
      <div class="tabs" role="group" aria-label="Which accounts">
        <ul>
          {(Object.keys(kinds) as Kind[]).map((each) => (
            <li key={each}>
              <button type="button" aria-pressed={each === kind} onClick={() => show(each)}>
                {kinds[each].label}
              </button>
            </li>
          ))}
        </ul>
      </div>
      {problem !== undefined && <ProblemNotice problem={problem} />}
      {list.problem !== undefined && (
        <ProblemNotice problem={list.problem} onRetry={() => void list.reload()} />
      )}
      {list.value === undefined ? (
        list.loading && <LoadingNotice what="accounts" />
      ) : (
        <>
          {list.value.accounts.length === 0 && <EmptyNotice title={kinds[kind].empty} />}
          <ul class="accounts" aria-label={kinds[kind].label}>
            {list.value.accounts.map(({ id }) => (
              <li key={id}>
                <a class="id" href={formatRoute({ page: 'home', account: id, cursor: undefined })}>
                  {id}
                </a>
                <Undo account={account} kind={kind} other={id} onChange={onChange} onProblem={setProblem} />
              </li>
            ))}
          </ul>
          <div class="paging">
            {after !== undefined && (
              <button type="button" onClick={() => setAfter(undefined)}>
                First
              </button>
            )}
            {list.value.next !== undefined && (
              <button type="button" onClick={() => setAfter(list.value?.next)}>
                More accounts
              </button>
            )}
          </div>
        </>
      )}
    </aside>
  );
}

function Undo(props: {
  readonly account: string;
  readonly kind: Kind;
  readonly other: string;
  readonly onChange: () => Promise<void>;
  readonly onProblem: (problem: ApiProblem | undefined) => void;
}) {
  const { account, kind, other, onChange, onProblem } = props;
  const { undo } = kinds[kind];
  if (undo === undefined) return null;
  return (
    <span class="actions quiet">
      <ActionButton
        label={undo}
        name={`${undo} ${other}`}
        done={`${undo} ${other}: done`}
        action={async () => {
          await call(apiPath('accounts', account, kind, other), { method: 'DELETE' });
          await onChange();
        }}
        onProblem={onProblem}
      />
    </span>
  );
}

function FollowForm({
  account,
  onChange,
}: {
  readonly account: string;
  readonly onChange: () => Promise<void>;
}) {
  const [other, setOther] = useState('');
  const [problem, setProblem] = useState<ApiProblem | undefined>(undefined);
  const follow = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (other === '') return;
    setProblem(undefined);
    try {
      await call(apiPath('accounts', account, 'following', other), { method: 'PUT' });
      announce(`${account} follows ${other}`);
      setOther('');
      await onChange();
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  return (
    <form class="inline-form" onSubmit={(event) => void follow(event)} aria-label={`Follow as ${account}`}>
      <label>
        <span>Account to follow</span>
        <input
          value={other}
          required
          maxLength={128}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => setOther(event.currentTarget.value)}
        />
      </label>
      <button type="submit">Follow</button>
      {problem !== undefined && <ProblemNotice problem={problem} />}
    </form>
  );
}
