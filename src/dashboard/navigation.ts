/** The current route as a signal, and moving between routes. The address bar is the only place that holds it. */
import { signal } from '@preact/signals';
import { formatRoute, parseRoute, type Route } from './route.js';

export const route = signal<Route>(parseRoute(location.hash));

window.addEventListener('hashchange', () => {
  route.value = parseRoute(location.hash);
});

export function goTo(next: Route): void {
  location.hash = formatRoute(next);
}
