import type { Connection } from './connection.js';
import { ask, here } from './environment.js';
import { Lock } from './lock.js';
import type { LockOptions } from './options.js';

const forgotten = new FinalizationRegistry<{ connection: Connection; number: number }>(({ connection, number }) =>
  here().look((door) => door.closeScope(connection.number, number), undefined),
);

/**
 * Code that has the scope may enter a lock again that was acquired in it: without a round trip, with the same token. The lock
 * is free when all its guards are released. Hand the scope on to those who belong to it, by argument or in an
 * `AsyncLocalStorage`.
 *
 * @example
 * ```ts
 * const scope = client.scope();
 * await using outer = await scope.lock('ledger').acquire();
 * await using inner = await scope.lock('ledger').acquire();
 * ```
 */
export class Scope {
  readonly #connection: Connection;
  readonly #number: number;

  /** @internal */
  constructor(connection: Connection) {
    this.#connection = connection;
    this.#number = ask((door) => door.openScope(connection.number));
    forgotten.register(this, { connection, number: this.#number });
  }

  /** The mutex of this name, for this scope. */
  lock(name: string, options: LockOptions = {}): Lock {
    return new Lock(this.#connection, name, { scope: this.#number }, options, this);
  }
}
