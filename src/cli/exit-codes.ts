/** The exit codes of the command line, as --help and docs/reference/cli.md state them. */
export const exitCodes = { done: 0, failed: 1, usage: 2, folderLocked: 3 } as const;
