/** What `headgate notify check` does. */
import { invalidInput } from '../../errors.js';
import type { Environment, Flags } from '../config.js';
import { createLog } from '../log.js';
import { loadNotifyConfiguration } from '../notify/load.js';
import { print, table } from '../output.js';

/** Needs no server: the file is read as a start would read it. */
export async function notifyCheck(flags: Flags, environment: Environment): Promise<void> {
  const found = await loadNotifyConfiguration({ flags, environment, log: createLog('silent') });
  if (found === undefined)
    throw invalidInput(
      '--notify-config',
      undefined,
      'a file (there is no headgate.config.json or .mjs here)',
    );
  const shown = {
    kinds: Object.entries(found.kinds).map(([kind, { channels, delivery }]) => ({
      kind,
      channels: channels.join(','),
      delivery,
    })),
    providers: found.providers.map(({ name, channel, platform }) => ({
      provider: name,
      channel: platform ?? channel,
    })),
  };
  print(
    shown,
    { json: flags['json'] === true },
    (all) => `${table(all.kinds)}\n\n${table(all.providers)}\n\nthe file is right`,
  );
}
