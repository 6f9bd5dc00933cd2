/** Starts the page. */
import { render } from 'preact';
import { App } from './app.js';
import { effect } from '@preact/signals';
import { startOverview } from './overview/live-overview.js';
import { askSession, session } from './session.js';

const holder = document.getElementById('page');
if (holder === null) throw new Error('index.html has no element with the id "page"');
let isStarted = false;
// Only who is signed in is told anything, and an overview that is refused would be asked for again and again.
effect(() => {
  if (isStarted || session.value.kind !== 'signed-in') return;
  isStarted = true;
  startOverview();
});
void askSession();
render(<App />, holder);
