/** For operators and probes: alive, ready, metrics, and the overview once or as a live stream. */
import { Type } from 'typebox';
import { createOverview } from '../overview.js';
import { answers } from '../schemas.js';
import { version } from '../../version.js';
import { typed, type RegisterRoutes } from './register.js';

const overviewEveryMs = 1_000;

export const operatingRoutes: RegisterRoutes = async (app, { parts, live }) => {
  const tags = ['operating'];
  const at = typed(app);
  const overview = createOverview(parts);

  at.get(
    '/health',
    {
      schema: {
        tags,
        summary: 'Alive, and what an acknowledged write survives here',
        response: answers(
          200,
          Type.Object({
            status: Type.Literal('ok'),
            version: Type.String(),
            durability: Type.String(),
            timelines: Type.Optional(
              Type.Object(
                { store: Type.String(), away: Type.Boolean() },
                {
                  description:
                    'Timelines kept outside the database; while these are away, homes are read from the posts',
                },
              ),
            ),
          }),
        ),
      },
    },
    async () => {
      const timelines = parts.readiness().serving ? parts.feed().timelinesApart() : undefined;
      return {
        status: 'ok' as const,
        version,
        durability: parts.durability(),
        ...(timelines && { timelines }),
      };
    },
  );

  const readiness = Type.Object({
    ready: Type.Boolean(),
    stage: Type.String(),
    progress: Type.Optional(
      Type.Object({ stage: Type.String(), done: Type.Integer(), total: Type.Integer() }),
    ),
  });
  at.get(
    '/ready',
    {
      schema: {
        tags,
        summary: 'Stores reachable, migrations done, demo world loaded; 503 until then',
        response: { 200: readiness, 503: readiness },
      },
    },
    async (_request, reply) => {
      const { ready, stage, progress } = parts.readiness();
      return reply.status(ready ? 200 : 503).send({ ready, stage, ...(progress ? { progress } : {}) });
    },
  );

  at.get('/metrics', { schema: { tags, summary: 'Prometheus text' } }, async (_request, reply) =>
    reply.header('content-type', parts.prometheus.contentType).send(await parts.prometheus.text()),
  );

  at.get('/v1/overview', { schema: { tags, response: answers(200, Type.Unknown()) } }, async () =>
    overview.read(),
  );

  at.get(
    '/v1/events',
    { schema: { tags, summary: 'Server-sent events: `overview` once a second' } },
    async (request, reply) => {
      const stream = live.open(request, reply);
      const tick = async (): Promise<void> => {
        if (!stream.open) return;
        try {
          stream.send('overview', await overview.read());
        } catch {
          // the next tick tries again; the log of the part has the cause
        }
        if (stream.open) timer = setTimeout(() => void tick(), overviewEveryMs);
      };
      let timer: NodeJS.Timeout | undefined;
      stream.onClose(() => clearTimeout(timer));
      await tick();
    },
  );
};
