export { createServer, openApiDocument, type Server, type ServerOptions } from './app.js';
export { parseApiKeys, type ApiKey, type Scope } from './auth.js';
export { createPrometheus, type Prometheus } from './metrics.js';
export type { Progress, Readiness, ServerParts } from './parts.js';
export { serverErrors } from './problem.js';
