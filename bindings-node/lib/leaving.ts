import type { Door } from './native.js';

/** What of a process is of use here; browsers have none. */
interface Holder {
  on?(event: 'exit', listener: () => void): unknown;
  [key: symbol]: unknown;
}

/**
 * All doors of this thread, which leave when it exits: also after `process.exit()`, where no cleanup hook of an addon is run.
 * Whoever loads the package several times, as test runners do, has several; one listener serves them all.
 */
function doors(holder: Holder): Set<Door> {
  const key = Symbol.for('fencelock.doors');
  const known = holder[key] as Set<Door> | undefined;
  if (known) return known;
  const all = new Set<Door>();
  holder[key] = all;
  holder.on?.('exit', () => all.forEach((door) => door.leave()));
  return all;
}

/** Has a door leave when this thread exits. */
export function leavesAtExit(door: Door): void {
  const holder = globalThis.process as unknown as Holder | undefined;
  if (holder) doors(holder).add(door);
}
