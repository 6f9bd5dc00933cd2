/** `headgate start`: the product at work on this machine, with a demo world on the embedded database. */
import type { Command } from 'commander';
import {
  demoConfig,
  notifyConfigHelp,
  serveConfig,
  type DemoConfig,
  type Environment,
  type Flags,
  feedTimelinesHelp,
  redisDurabilityHelp,
  redisUrlHelp,
} from '../config.js';
import { createApiClient } from '../api-client.js';
import { loadWorld, type World } from '../demo/load-world.js';
import { startNotifyDemo } from '../demo/notify-demo.js';
import { createTraffic } from '../demo/traffic.js';
import { createLog } from '../log.js';
import { loadNotifyConfiguration } from '../notify/load.js';
import { createProgressDisplay } from '../progress.js';
import { runServer, type Running } from '../run-server.js';

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

export function addStart(program: Command, environment: Environment): void {
  program
    .command('start')
    .description('start Headgate on the embedded database with a living demo world')
    .option('--port <number>', 'port to listen on (HEADGATE_PORT; 4400; 0 takes a free one)')
    .option('--data <folder>', 'folder of the embedded database (HEADGATE_DATA; ./.headgate)')
    .option('--redis-url <url>', redisUrlHelp)
    .option('--redis-durability <level>', redisDurabilityHelp)
    .option('--feed-timelines <where>', feedTimelinesHelp)
    .option('--notify-config <file>', `${notifyConfigHelp}; without one, kinds of a demo`)
    .option(
      '--follows <file>',
      'a follow graph to load: edge list, optionally gzip, # comments (HEADGATE_FOLLOWS)',
    )
    .option('--accounts <number>', 'accounts of the generated graph (HEADGATE_ACCOUNTS; 2000)')
    .option('--rate <number>', 'posts a second of the demo traffic (HEADGATE_RATE; 2)')
    .option('--log-level <level>', 'debug, info, warn, error or silent (HEADGATE_LOG_LEVEL; warn)')
    .addHelpText(
      'after',
      '\nExample:\n  headgate start --follows slashdot-follows.txt.gz --data ./slashdot --port 4401',
    )
    .action(async (flags: Flags) => {
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
    });
}
