import { onAbort } from './cancellation.js';
import { LockLostError } from './error.js';
import type { Guard, Released } from './guard.js';
import { nextTurn, warn } from './platform.js';

/** The code that runs under a lock. The signal aborts when the lock is lost, or when the one given to `using` does. */
export type Body<G, T> = (guard: G, signal: AbortSignal) => T | PromiseLike<T>;

/** How a body ended. */
type Ended<T> = { value: T } | { error: unknown };

/**
 * Runs a body under a guard and gives that back, by `end`. When the lock is lost, the body's signal aborts; a body that does
 * not end by that is not waited for. Under a lock that is lost already it does not begin.
 */
export async function run<G extends Guard, T>(
  guard: G,
  body: Body<G, T>,
  outer: AbortSignal | null | undefined,
  end: (guard: G, well: boolean) => Promise<Released>,
): Promise<T> {
  guard.begin();
  // U04: a promise keeps no process alive, and a body that waits for its signal has nothing else.
  const awake = setInterval(() => {}, 2 ** 30);
  try {
    return await inside(guard, body, outer, end);
  } finally {
    clearInterval(awake);
  }
}

async function inside<G extends Guard, T>(
  guard: G,
  body: Body<G, T>,
  outer: AbortSignal | null | undefined,
  end: (guard: G, well: boolean) => Promise<Released>,
): Promise<T> {
  const lost = guard.signal;
  const [signal, leave] = outer ? either(lost, outer) : [lost, undefined];
  const ended = (async () => body(guard, signal))().then(
    (value): Ended<T> => ({ value }),
    (error: unknown): Ended<T> => ({ error }),
  );
  let unfollow: (() => void) | undefined;
  // Code cannot be ended from outside, so a body that ignores its signal is not waited for.
  // One turn of the event loop for the body to tell what it has to say to the loss.
  const told = new Promise<undefined>((resolve) => {
    const soon = (): void => nextTurn(() => resolve(undefined));
    if (lost.aborted) soon();
    else unfollow = onAbort(lost, soon);
  });
  const first = await Promise.race([ended, told]);
  unfollow?.();
  leave?.();
  const released = await giveBack(guard, first !== undefined && 'value' in first, end);
  if (first === undefined) {
    void ended.then((late) => tellLate(guard, late));
    throw lost.reason;
  }
  if ('error' in first) throw follows(first.error, lost) ? lost.reason : caused(first.error, lost);
  if (released instanceof Error) throw released;
  if (released === 'already_lost') throw lost.reason;
  return first.value;
}

/**
 * A signal that aborts with the first of two, and how to let go of both. `AbortSignal.any` never does: of every call, something
 * stays at a signal that lives as long as its program.
 */
function either(lost: AbortSignal, outer: AbortSignal): [AbortSignal, () => void] {
  const aborted = [lost, outer].find((signal) => signal.aborted);
  if (aborted) return [aborted, () => {}];
  const controller = new AbortController();
  const follow = (signal: AbortSignal): (() => void) => onAbort(signal, () => controller.abort(signal.reason));
  const leave = [follow(lost), follow(outer)];
  return [controller.signal, () => leave.forEach((undo) => undo())];
}

/** An error of the release must not hide the body's. */
async function giveBack<G extends Guard>(
  guard: G,
  well: boolean,
  end: (guard: G, well: boolean) => Promise<Released>,
): Promise<Released | Error> {
  if (guard.released) return 'released';
  try {
    return await end(guard, well);
  } catch (error) {
    return error as Error;
  }
}

/** Whether this is the error of a body that ended because the lock was lost. */
function follows(error: unknown, lost: AbortSignal): boolean {
  if (!lost.aborted || !(error instanceof Error)) return false;
  return error instanceof LockLostError || error.name === 'AbortError' || error.cause === lost.reason;
}

/** The error of a body that failed by itself. If the lock was lost by then, that is its cause, unless it has one of its own. */
function caused(error: unknown, lost: AbortSignal): unknown {
  if (lost.aborted && error instanceof Error && error.cause === undefined && Object.isExtensible(error)) {
    error.cause = lost.reason;
  }
  return error;
}

/** The call has rejected with the loss; what the body fails with later is told all the same. */
function tellLate(guard: Guard, late: Ended<unknown>): void {
  if (!('error' in late) || follows(late.error, guard.signal)) return;
  const { error } = late;
  const detail = error instanceof Error ? error.stack : String(error);
  const message = `what ran under the lock "${guard.name}" failed after the lock had been lost`;
  warn(message, 'FENCELOCK_LATE', detail);
}
