/** Serves the built dashboard: a client of the HTTP API and nothing else, under a policy that lets it load only itself. */
import fastifyStatic from '@fastify/static';
import type { FastifyInstance } from 'fastify';

const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  // The charts set styles from script, which needs no 'unsafe-inline'.
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');

export function registerDashboard(app: FastifyInstance, folder: string): void {
  app.register(fastifyStatic, {
    root: folder,
    prefix: '/',
    wildcard: false,
    setHeaders: (reply) => void reply.header('content-security-policy', contentSecurityPolicy),
  });
}
