/**
 * A Prisma client without models, over the driver adapter for `pg`. It is made from what `prisma generate` writes for such a
 * schema, because the command itself fetches a program from a host of its own, which an installation may not reach.
 */
import { PrismaPg } from '@prisma/adapter-pg';
import { type GetPrismaClientConfig, getPrismaClient } from '@prisma/client/runtime/client';

interface PrismaClient {
  $transaction<T>(
    work: (transaction: unknown) => Promise<T>,
    options: { readonly maxWait: number; readonly timeout: number },
  ): Promise<T>;
  $disconnect(): Promise<void>;
}

/** Neither the compiler that Prisma brings nor WebAssembly itself has types here. */
const load = (file: string) => import(`@prisma/client/runtime/${file}`);
const { WebAssembly } = globalThis as unknown as { WebAssembly: { Module: new (bytes: Buffer) => object } };

const generated: GetPrismaClientConfig = {
  previewFeatures: [],
  clientVersion: '7.10.0',
  engineVersion: '',
  activeProvider: 'postgresql',
  inlineSchema: 'datasource db {\n  provider = "postgresql"\n}\n',
  runtimeDataModel: { models: {}, enums: {}, types: {} },
  parameterizationSchema: { strings: [], graph: 'AAAA' },
  compilerWasm: {
    getRuntime: () => load('query_compiler_small_bg.postgresql.mjs'),
    getQueryCompilerWasmModule: async () => {
      const { wasm } = await load('query_compiler_small_bg.postgresql.wasm-base64.mjs');
      return new WebAssembly.Module(Buffer.from(wasm, 'base64'));
    },
    importName: './query_compiler_small_bg.js',
  },
};

export function openPrisma(connectionString: string): PrismaClient {
  const Client = getPrismaClient(generated);
  return new Client({ adapter: new PrismaPg({ connectionString }) }) as unknown as PrismaClient;
}
