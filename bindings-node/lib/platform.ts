import { basename } from 'node:path';

/** The application that people who inspect a lock see, unless another is given: the file name of the script. */
export function appName(): string {
  return basename(process.argv[1] ?? process.title);
}

/** Calls when whatever is due now has run. */
export function nextTurn(call: () => void): void {
  setImmediate(call);
}

/** Tells whoever runs the program. `code` is for machines. */
export function warn(message: string, code: string, detail?: string): void {
  process.emitWarning(message, { type: 'FencelockWarning', code, ...(detail && { detail }) });
}
