/** Recurring messages over HTTP: which there are, set one by its name, end one. */
import { Type } from 'typebox';
import { queueError, type Recurring, type RecurOptions } from '../../queue/index.js';
import { answers } from '../schemas.js';
import { newMessage } from './messages.js';
import { typed, type RegisterRoutes } from './register.js';

const nameParams = Type.Object({ name: Type.String() });
const template = Type.Omit(newMessage, ['id'], { additionalProperties: false });
const next = Type.Number({ description: 'The tick that has not been enqueued yet, unix milliseconds.' });
const recurringSchema = Type.Object({
  name: Type.String(),
  queue: Type.String(),
  cron: Type.String(),
  timeZone: Type.String(),
  next,
  message: template,
});

/** With the template as it was set; each of its messages has an id of its own. */
const shown = ({ message, ...recurring }: Recurring) => ({
  ...recurring,
  message: { ...message, id: undefined, payload: JSON.parse(message.payload) as unknown },
});

export const recurringRoutes: RegisterRoutes = async (app, { parts }) => {
  const tags = ['queues'];
  const at = typed(app);

  at.get(
    '/v1/recurring',
    { schema: { tags, response: answers(200, Type.Object({ recurring: Type.Array(recurringSchema) })) } },
    async () => ({ recurring: (await parts.queue().recurring()).map(shown) }),
  );

  at.put(
    '/v1/recurring/:name',
    {
      config: { admin: true },
      schema: {
        tags,
        summary: 'A message at each tick; the same cron and time zone again keep their place',
        params: nameParams,
        body: Type.Object(
          {
            queue: Type.String(),
            cron: Type.String({ description: 'Five fields, such as "0 3 * * *".' }),
            timeZone: Type.Optional(Type.String({ description: 'IANA name; default UTC.' })),
            message: template,
          },
          { additionalProperties: false },
        ),
        response: answers(200, Type.Object({ name: Type.String(), next })),
      },
    },
    async ({ params: { name }, body }) => ({
      name,
      ...(await parts.queue().recur({ name, ...body } as RecurOptions)),
    }),
  );

  at.delete(
    '/v1/recurring/:name',
    {
      config: { admin: true },
      schema: { tags, params: nameParams, response: answers(200, Type.Object({ name: Type.String() })) },
    },
    async ({ params: { name } }) => {
      if (await parts.queue().endRecurring(name)) return { name };
      throw queueError('recurring-unknown', `there is no recurring message "${name}"`, {
        field: 'name',
        value: name,
      });
    },
  );
};
