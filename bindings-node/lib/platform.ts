import { basename } from 'node:path';
import type { Door } from './native.js';

/** What people who inspect see as the application, unless it is told: the file name of the script. */
export function appName(): string {
  return basename(process.argv[1] ?? process.title);
}

/** Tells whoever runs the program. `code` is for machines. */
export function warn(message: string, code: string, detail?: string): void {
  process.emitWarning(message, { type: 'FencelockWarning', code, ...(detail && { detail }) });
}

/**
 * All doors of this thread, which leave when it exits: also after `process.exit()`, where no cleanup hook of an addon is run.
 * Whoever loads the package several times, as test runners do, has several; one listener serves them all.
 */
function doors(): Set<Door> {
  const key = Symbol.for('fencelock.doors');
  const holder = process as typeof process & { [key]?: Set<Door> };
  const known = holder[key];
  if (known) return known;
  const all = (holder[key] = new Set<Door>());
  process.on('exit', () => all.forEach((door) => door.leave()));
  return all;
}

/** Has a door leave when this thread exits. */
export function leavesAtExit(door: Door): void {
  doors().add(door);
}
