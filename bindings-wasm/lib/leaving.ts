import { builtin } from './builtin.js';
import { whenEnding } from './ending.js';
import type { Door } from './native.js';
import type { Wire } from './wire.js';

/** So long a process that has nothing more to do waits for its clients to close, in milliseconds. */
const LAST = 1000;

const CLOSE = JSON.stringify({ op: 'close' });

/** The wires that are not closed, each with its client. */
const open = new Map<Wire, number>();

/** A client is connected by this wire. */
export function opened(wire: Wire, client: number): void {
  if (!wire.closed) open.set(wire, client);
}

let last: ReturnType<typeof setTimeout> | undefined;

/** A wire was closed. */
export function ended(wire: Wire): void {
  open.delete(wire);
  if (open.size === 0) clearTimeout(last);
}

/**
 * Has all clients close when this thread has nothing more to do: what they hold is given back, as far as the store answers in time.
 * After `process.exit()` nothing can be sent any more.
 */
export function leavesAtExit(ask: (question: (door: Door) => void) => void): void {
  // Nothing can be sent at `exit`, so nothing of this package may keep a process from reaching `beforeExit`.
  if (builtin) whenEnding('beforeExit', 'fencelock-wasm.leaving', () => ask(leave));
}

function leave(door: Door): void {
  if (open.size === 0) return;
  const close = (): void => [...open.keys()].forEach((wire) => wire.close());
  // It also keeps the process alive that long.
  last = setTimeout(close, LAST);
  try {
    for (const client of open.values()) {
      // Nobody uses what is given back here, so its end is no warning.
      door.listen(client, null);
      door.submit(client, CLOSE);
    }
    door.setOff();
  } catch {
    // A core that is broken closes nothing.
    close();
  }
}
