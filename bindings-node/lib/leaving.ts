import type { Door } from './native.js';

/** What of a process is of use here; browsers have none. */
interface Holder {
  on?(event: 'exit', listener: () => void): unknown;
  [key: symbol]: unknown;
}

/**
 * What leaves when this thread exits: also after `process.exit()`, where no cleanup hook of an addon is run. Whoever loads the
 * package several times, as test runners do, has several; one listener serves them all.
 */
function leaving(holder: Holder): Set<() => void> {
  const key = Symbol.for('fencelock.leaving');
  const known = holder[key] as Set<() => void> | undefined;
  if (known) return known;
  const all = new Set<() => void>();
  holder[key] = all;
  holder.on?.('exit', () => all.forEach((leave) => leave()));
  return all;
}

/** Has a door, to which one comes like this, leave when this thread exits. */
export function leavesAtExit(ask: (question: (door: Door) => void) => void): void {
  const holder = globalThis.process as unknown as Holder | undefined;
  if (holder) leaving(holder).add(() => ask((door) => door.leave()));
}
