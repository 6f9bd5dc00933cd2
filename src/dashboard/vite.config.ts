// Builds the dashboard into dist/dashboard: plain files that any server can hand out, under any path, with a strict
// content security policy (nothing inline, nothing from elsewhere).
import { fileURLToPath } from 'node:url';
import { preact } from '@preact/preset-vite';
import { defineConfig } from 'vite';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  root: here('.'),
  // Relative, so that the page works at `/` and below any path a proxy puts it under.
  base: './',
  plugins: [preact({ prefreshEnabled: false, devToolsEnabled: false })],
  build: {
    outDir: here('../../dist/dashboard'),
    emptyOutDir: true,
    target: 'es2022',
    // An inlined asset is a data: address, which the content security policy refuses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: {
    // `vite --config src/dashboard/vite.config.ts` beside a running `npm start`.
    proxy: { '/v1': 'http://127.0.0.1:4400', '/ready': 'http://127.0.0.1:4400' },
  },
});
