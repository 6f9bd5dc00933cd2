/** What an operator may do to a message in its state: cancel a live one, requeue an errored one. */
import { ActionButton } from '../action-button.js';
import { apiPath, call, type ApiProblem } from '../api.js';
import type { Message } from '../api-types.js';

export interface MessageActionsProps {
  readonly queue: string;
  readonly message: Message;
  readonly onChange: () => Promise<void>;
  readonly onProblem: (problem: ApiProblem | undefined) => void;
}

export function MessageActions({ queue, message, onChange, onProblem }: MessageActionsProps) {
  const act = async (action: 'cancel' | 'requeue'): Promise<void> => {
    await call(apiPath('queues', queue, 'messages', message.id, action), { method: 'POST' });
    await onChange();
  };
  switch (message.state) {
    case 'invisible':
    case 'pending':
    case 'running':
      return (
        <ActionButton
          label="Cancel"
          name={`Cancel message ${message.id}`}
          confirm="Cancel for good?"
          done={`Message ${message.id} is canceled`}
          action={() => act('cancel')}
          onProblem={onProblem}
        />
      );
    case 'errored':
      return (
        <ActionButton
          label="Requeue"
          name={`Requeue message ${message.id}`}
          done={`Message ${message.id} is pending again`}
          action={() => act('requeue')}
          onProblem={onProblem}
        />
      );
    default:
      return null;
  }
}
