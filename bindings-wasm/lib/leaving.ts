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

/** What of a process is of use here; browsers have none. */
interface Holder {
  on?(event: 'beforeExit', listener: () => void): unknown;
  [key: symbol]: unknown;
}

/**
 * What leaves when this thread has nothing more to do; after `process.exit()` nothing can be sent any more. Whoever loads the
 * package several times, as test runners do, has several; one listener serves them all.
 */
function leaving(holder: Holder): Set<() => void> {
  const key = Symbol.for('fencelock-wasm.leaving');
  const known = holder[key] as Set<() => void> | undefined;
  if (known) return known;
  const all = new Set<() => void>();
  holder[key] = all;
  holder.on?.('beforeExit', () => all.forEach((leave) => leave()));
  return all;
}

/** Has all clients close when this thread has nothing more to do: what they hold is given back, as far as the store answers in time. */
export function leavesAtExit(ask: (question: (door: Door) => void) => void): void {
  const holder = globalThis.process as unknown as Holder | undefined;
  if (holder) leaving(holder).add(() => ask(leave));
}

function leave(door: Door): void {
  if (open.size === 0) return;
  const close = (): void => [...open.keys()].forEach((wire) => wire.close());
  // It also keeps the process alive that long.
  last = setTimeout(close, LAST);
  try {
    for (const client of open.values()) door.submit(client, CLOSE);
    door.setOff();
  } catch {
    // A core that is broken closes nothing.
    close();
  }
}
