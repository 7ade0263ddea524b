import { builtin } from './builtin.js';

/** The application that people who inspect a lock see, unless another is given: the script's name, or the page's address. */
export function appName(): string {
  const place = globalThis.process?.argv?.[1] ?? globalThis.location?.pathname ?? '';
  return place.split(/[/\\]/).pop() ?? '';
}

/** Calls when whatever is due now has run. Browsers have no `setImmediate`. */
export function nextTurn(call: () => void): void {
  (globalThis.setImmediate ?? setTimeout)(call);
}

/** Tells whoever runs the program. `code` is for machines. */
export function warn(message: string, code: string, detail?: string): void {
  const emit = builtin && process.emitWarning;
  if (emit) emit.call(process, message, { type: 'FencelockWarning', code, ...(detail && { detail }) });
  else console.warn(`FencelockWarning [${code}]: ${message}${detail ? `\n${detail}` : ''}`);
}
