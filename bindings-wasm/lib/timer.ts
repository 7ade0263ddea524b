/** A timer that a server's process does not wait for. */
export type Timer = ReturnType<typeof setTimeout>;

/** Calls after so many milliseconds, if the process is still there. */
export function unheld(call: () => void, millis: number): Timer {
  const timer = setTimeout(call, millis);
  (timer as { unref?: () => void }).unref?.();
  return timer;
}
