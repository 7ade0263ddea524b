import type { Connection } from './connection.js';
import { complaint, here } from './environment.js';
import { errorOf, type FencelockError } from './error.js';

/** The signal of one guard, made when it is first asked for. */
export class Loss {
  readonly #controller = new AbortController();
  #operation = 0;

  /** `told` is called when the loss is told. */
  constructor(connection: Connection, guard: number, told: () => void) {
    const lost = complaint(connection.number, guard);
    if (lost) {
      if (isLoss(lost)) {
        this.#controller.abort(lost);
        told();
      }
      return;
    }
    this.#operation = here().watch(
      (door) => door.lost(connection.number, guard),
      connection,
      (_, failure) => {
        const defect = failure?.code === 'internal' ? errorOf(failure) : undefined;
        const lost = complaint(connection.number, guard) ?? defect;
        if (!lost || !isLoss(lost)) return;
        this.#controller.abort(lost);
        told();
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

/** Whether this error means a loss: not of a guard that was given back, but also if a defect hides the state of the guard. */
function isLoss({ code }: FencelockError): boolean {
  return code === 'lost' || code === 'internal';
}
