/**
 * Every queue there is, live, and what recurs. The list of the overview stream is the same as that of the API, so one
 * serves both.
 */
import { LoadingNotice, ProblemNotice } from '../notice.js';
import { askOnce, overviewProblem, samples } from '../overview/live-overview.js';
import { QueueTable } from '../overview/queue-table.js';
import { RecurringMessages } from './recurring.js';

export function QueuesPage() {
  const problem = overviewProblem.value;
  return (
    <>
      <h1 tabIndex={-1}>Queues</h1>
      {problem !== undefined && <ProblemNotice problem={problem} onRetry={() => void askOnce()} />}
      {samples.value.length > 0 ? (
        <QueueTable samples={samples.value} />
      ) : (
        problem === undefined && <LoadingNotice what="the queues" />
      )}
      <RecurringMessages />
    </>
  );
}
