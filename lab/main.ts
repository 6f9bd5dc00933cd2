/**
 * `npm run lab -- <name> [--json] [--quick] [--store …] [--seed n]`: runs one experiment and prints it; `list` lists them.
 * Exits 0 when the experiment ran, whatever it found.
 */
import { parseArgs } from 'node:util';
import { experiments } from './experiments/index.js';
import { asJson, asText } from './report.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    store: { type: 'string' },
    seed: { type: 'string' },
  },
});

const [name = 'list'] = positionals;

if (name === 'list') {
  for (const experiment of experiments) console.log(`${experiment.name.padEnd(16)} ${experiment.shows}`);
} else {
  const experiment = experiments.find((candidate) => candidate.name === name);
  if (experiment === undefined) {
    console.error(`no experiment "${name}"; known: ${experiments.map((known) => known.name).join(', ')}`);
    process.exit(2);
  }
  const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
  const tell = (line: string): void => void process.stderr.write(`${line}\n`);
  const report = await experiment.run({ quick: values.quick, store: values.store, seed, tell });
  console.log((values.json ? asJson : asText)({ experiment, report, seed }));
}
