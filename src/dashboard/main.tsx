/** Starts the page. */
import { render } from 'preact';
import { App } from './app.js';
import { startOverview } from './overview/live-overview.js';

const holder = document.getElementById('page');
if (holder === null) throw new Error('index.html has no element with the id "page"');
startOverview();
render(<App />, holder);
