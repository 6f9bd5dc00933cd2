/** What `headgate start` does: a server with its workers, and behind it the demo world and its traffic. */
import { createApiClient } from '../api-client.js';
import { demoConfig, type DemoConfig, type Environment, type Flags } from '../config.js';
import { loadWorld, type World } from '../demo/load-world.js';
import { startNotifyDemo } from '../demo/notify-demo.js';
import { createTraffic } from '../demo/traffic.js';
import { createLog } from '../log.js';
import { loadNotifyConfiguration } from '../notify/load.js';
import { createProgressDisplay } from '../progress.js';
import { runServer, type Running } from '../run-server.js';
import { serveConfig } from '../serve-config.js';

const print = (line: string): void => void process.stdout.write(`${line}\n`);

function invitation({ address }: Running, { mostFollowed, reader }: World): void {
  const id = encodeURIComponent(mostFollowed);
  print(`open   ${address}/ for the dashboard, ${address}/docs for the API`);
  print(
    `post   curl -s ${address}/v1/posts -H 'content-type: application/json' -d '${JSON.stringify({ author: mostFollowed, text: 'hello' })}'`,
  );
  print(
    `read   curl -s '${address}/v1/accounts/${encodeURIComponent(reader)}/home'   (a follower of ${id}; Ctrl-C stops)`,
  );
}

async function prepareWorld(
  running: Running,
  demo: DemoConfig,
  { dataFolder, notifies }: { readonly dataFolder: string; readonly notifies: boolean },
): Promise<{ world: World | undefined; stop(): Promise<void> }> {
  const display = createProgressDisplay();
  let world: World | undefined;
  try {
    world = await loadWorld({
      feed: running.parts.feed,
      demo,
      dataFolder,
      signal: running.signal,
      onProgress: (progress) => {
        running.report(progress);
        display.update(progress.stage, progress.done, progress.total);
      },
    });
  } finally {
    display.end();
  }
  if (!world) return { world, stop: async () => {} };
  if (world.summary) print(world.summary);
  const traffic = createTraffic({
    client: createApiClient(running.address),
    accounts: world.accounts,
    rate: demo.rate,
    notifies,
    log: running.log,
  });
  await traffic.start();
  return { world, stop: () => traffic.stop() };
}

export async function start(flags: Flags, environment: Environment): Promise<void> {
  const config = serveConfig(flags, environment);
  const demo = demoConfig(flags, environment);
  const log = createLog(config.logLevel);
  const own = await loadNotifyConfiguration({ flags, environment, log });
  const notifyDemo = own === undefined ? await startNotifyDemo() : undefined;
  let world: World | undefined;
  await runServer({
    config,
    notify: (address) => own ?? notifyDemo?.configuration(address),
    withWorkers: true,
    print,
    prepare: async (running) => {
      // a server that stops takes no receipts
      running.signal.addEventListener('abort', () => void notifyDemo?.stop(), { once: true });
      const prepared = await prepareWorld(running, demo, {
        dataFolder: config.dataFolder,
        notifies: notifyDemo !== undefined,
      });
      world = prepared.world;
      return prepared;
    },
    onReady: (running) => {
      if (world) invitation(running, world);
    },
  }).finally(() => notifyDemo?.stop());
}
