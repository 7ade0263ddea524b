import type { Connection } from './connection.js';
import { complaint, here } from './environment.js';

/** The signal of one guard, made when it is first asked for. */
export class Loss {
  readonly #controller = new AbortController();
  #operation = 0;

  constructor(connection: Connection, guard: number) {
    const lost = complaint(connection.number, guard);
    if (lost) {
      // One that was given back is not lost.
      if (lost.code === 'lost') this.#controller.abort(lost);
      return;
    }
    // A guard nobody has any more must not be kept by what waits for its loss.
    const controller = new WeakRef(this.#controller);
    const environment = here();
    this.#operation = environment.watch(
      () => environment.door.lost(connection.number, guard),
      connection,
      () => {
        // Also when nobody can say any more whether it was.
        const lost = complaint(connection.number, guard);
        if (lost?.code === 'lost') controller.deref()?.abort(lost);
      },
    );
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The guard is given back: nothing is left to lose. */
  end(): void {
    here().forget(this.#operation);
  }

  /** It was found lost when it was given back. */
  found(reason: Error): void {
    if (!this.signal.aborted) this.#controller.abort(reason);
  }
}
