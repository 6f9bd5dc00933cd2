// Reads the test runner's JSON report and prints the closing line; exits non-zero when anything failed or nothing ran.
import { readFileSync } from 'node:fs';

const [file, status] = process.argv.slice(2);
let report;
try {
  report = JSON.parse(readFileSync(file, 'utf8'));
} catch (error) {
  console.log(`no report of the tests: ${error.message}`);
  console.log('0 passed, 1 failed');
  process.exit(1);
}
// a file that fails before its first test counts as one failure; the runner reports it without any test in it
const brokenFiles = report.testResults.filter(
  (entry) => entry.status === 'failed' && entry.assertionResults.every((test) => test.status !== 'failed'),
);
const unhandled = status !== '0' && report.numFailedTests === 0 && brokenFiles.length === 0 ? 1 : 0;
const failed = report.numFailedTests + brokenFiles.length + unhandled;
const skipped = report.numPendingTests + report.numTodoTests;
for (const { assertionResults } of report.testResults)
  for (const test of assertionResults)
    if (test.status === 'skipped' || test.status === 'pending') console.log(`skipped: ${test.fullName}`);
for (const entry of brokenFiles) console.log(`failed as a whole: ${entry.name}: ${entry.message}`);
console.log(`${report.numPassedTests} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
process.exit(failed > 0 || report.numPassedTests === 0 ? 1 : 0);
