import { builtin } from './builtin.js';
import { unheld, type Timer } from './timer.js';

/** By how many milliseconds the clocks may differ between two looks for other reasons than sleep. */
const SLEPT = 10;

/** A call that comes later, unless it is stopped before. */
interface Later {
  stopped: boolean;
  timer?: Timer;
}

/** The services that the core does not have by itself: clock, timers, randomness, and its turn on the event loop. */
export class Host {
  readonly #turn: () => void;
  readonly #guarded: (call: () => void) => void;
  #clock = performance.now();
  #date = Date.now();
  #ahead = 0;

  /** `guarded` sees to what a call of the core's may throw. */
  constructor(turn: () => void, guarded: (call: () => void) => void) {
    this.#turn = turn;
    this.#guarded = guarded;
  }

  /**
   * Milliseconds since the beginning. `performance.now()` stands still on some platforms while the machine sleeps; the wall
   * clock does not, so what it has run ahead since the last look counts. If that was a step of the wall clock, leases end early.
   */
  now(): number {
    const before = performance.now();
    const date = Date.now();
    const clock = performance.now();
    // Where the process was held up between these looks, the difference of the clocks says nothing: the next look tells.
    if (clock - before < SLEPT / 2) {
      const slept = date - this.#date - (clock - this.#clock);
      if (slept > SLEPT) this.#ahead += slept;
      [this.#clock, this.#date] = [clock, date];
    }
    return clock + this.#ahead;
  }

  /** Milliseconds since 1970. */
  wall(): number {
    return Date.now();
  }

  /** Calls after so many milliseconds. */
  after(millis: number, call: () => void): Later {
    const later: Later = { stopped: false };
    later.timer = unheld(() => {
      // The core has dropped the call then, and must not be called by it.
      if (!later.stopped) this.#guarded(call);
    }, millis);
    return later;
  }

  /** Stops a call that has not come yet, also where its timer rings all the same: in Workers nobody clears another request's. */
  stop(later: Later): void {
    later.stopped = true;
    clearTimeout(later.timer);
  }

  /** Bytes nobody can guess. */
  random(count: number): Uint8Array {
    return crypto.getRandomValues(new Uint8Array(count));
  }

  /** The machine's name; in a browser that of where the page came from. */
  machine(): string {
    return builtin?.('node:os').hostname() ?? globalThis.location?.host ?? '';
  }

  /** The number of the process, 0 where there is none. */
  pid(): number {
    return globalThis.process?.pid ?? 0;
  }

  /** Gives the core its turn, behind whatever runs now. */
  turn(): void {
    // Nobody replaces promises by a clock of a test's, as happens to the other ways to be called later.
    void Promise.resolve().then(this.#turn);
  }
}
