import { whenEnding } from './ending.js';
import type { Door } from './native.js';

/**
 * Has a door, to which one comes like this, leave when this thread exits: also after `process.exit()`, where no cleanup hook of an
 * addon is run.
 */
export function leavesAtExit(ask: (question: (door: Door) => void) => void): void {
  // The door's own cleanup hook serves workers that are terminated: they run no listener.
  whenEnding('exit', 'fencelock.leaving', () => ask((door) => door.leave()));
}
