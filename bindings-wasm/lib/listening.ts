import { unheld } from './timer.js';

/** The shortest and the longest rest between two attempts to listen, in milliseconds. */
const [SHORTEST_REST, LONGEST_REST] = [10, 1000];

/** Listens for as long as a connection lasts, and says when that has begun. */
export type Attempt = (begun: () => void) => Promise<void>;

/** Does something, and stops it at its end and when all is over. */
export async function until(over: AbortSignal, stop: () => void, work: () => Promise<void>): Promise<void> {
  over.addEventListener('abort', stop);
  try {
    await work();
  } finally {
    over.removeEventListener('abort', stop);
    stop();
  }
}

/**
 * Listens, and again when a connection has ended, until that is over. Only the first attempt has to begin: it resolves then.
 * Messages sent between two attempts were missed, which is a `gap`. The rests keep no process alive.
 */
export function listening(attempt: Attempt, gap: () => void, over: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (over.aborted) return reject(over.reason as Error);
    let first = true;
    const begun = (): void => {
      if (!first) gap();
      first = false;
      resolve();
    };
    const listen = async (): Promise<void> => {
      for (let rest = SHORTEST_REST; !over.aborted; rest = Math.min(rest * 2, LONGEST_REST)) {
        const began = performance.now();
        // Of those that follow nobody is told why they ended.
        const ended = await attempt(begun).catch((error: unknown) => error);
        if (first) return reject(ended ?? new Error('the connection ended'));
        if (performance.now() - began > LONGEST_REST) rest = SHORTEST_REST;
        await new Promise<void>((resolve) => unheld(resolve, rest));
      }
    };
    void listen();
  });
}
