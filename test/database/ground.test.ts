import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { killPrograms, startProgram } from './program.js';

afterAll(killPrograms);

test('importing the database loads no driver', async () => {
  const program = startProgram('loaded-modules');
  expect(await program.ended).toBe(0);
  expect(program.lines).toEqual(['done']);
});

test('a throwaway server does not outlive a process that was killed, nor does its folder', async () => {
  const program = startProgram('start-server');
  await expect.poll(() => program.lines, { timeout: 30_000 }).toHaveLength(1);
  const { port, logFile } = JSON.parse(program.lines[0] ?? '') as { port: number; logFile: string };
  expect(await canConnect(port)).toBe(true);
  program.kill('SIGKILL');
  await expect.poll(() => canConnect(port), { timeout: 30_000 }).toBe(false);
  await expect.poll(() => existsSync(dirname(logFile)), { timeout: 30_000 }).toBe(false);
});

function canConnect(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const finish = (connected: boolean) => (): void => {
      socket.destroy();
      resolve(connected);
    };
    socket.on('connect', finish(true)).on('error', finish(false));
  });
}
