/** So long an attempt to connect goes on that nobody waits for, in milliseconds. */
const UNAWAITED = 1000;

let pulse: ReturnType<typeof setInterval> | undefined;

/** Keeps a server's process alive from now on, since somebody waits, or lets it go. */
export function hold(alive: boolean): void {
  clearInterval(pulse);
  pulse = alive ? setInterval(() => {}, 0x7fffffff) : undefined;
}

/**
 * An attempt to connect begins, which keeps the process alive as nothing else here does: it cannot be let go, and where nobody
 * refuses it, it lasts for minutes. It is stopped when nobody waits any more; answers what is called when it has ended.
 */
export function connecting(stop: () => void): () => void {
  const look = setInterval(() => {
    if (!pulse) stop();
  }, UNAWAITED);
  (look as { unref?: () => void }).unref?.();
  return () => clearInterval(look);
}
