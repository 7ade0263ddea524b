import type { Connection } from './connection.js';
import { optionsForCore } from './names.js';

/** A value and the version it was read at, or written as. */
export interface Snapshot<T> {
  readonly value: T;
  readonly version: number;
}

/** How a compare-and-set ended: written, with this version; or somebody was faster, and this is there instead. */
export type Swapped<T> = { readonly done: number } | { readonly changed: Snapshot<T> | null };

/**
 * A value by name that is replaced only if nobody was faster. It is kept as JSON, so that every language reads what another
 * wrote. Nobody holds anything: that suits values that are seldom fought over.
 *
 * @example
 * ```ts
 * const balance = client.version<number>('balance:42');
 * await balance.update((value = 0) => value + 100);
 * ```
 */
export class Version<T> {
  /** The value's name. */
  readonly name: string;
  readonly #connection: Connection;
  readonly #options: object;

  /** @internal */
  constructor(connection: Connection, name: string, options: object) {
    this.#connection = connection;
    this.name = name;
    this.#options = optionsForCore(options);
  }

  /** The value and its version; null if there is none. */
  read(): Promise<Snapshot<T> | null> {
    return this.#perform('read_version', { options: this.#options });
  }

  /** Writes the value if its version is still the one expected; with null, if there is no value. */
  compareAndSet(expected: number | null, value: T): Promise<Swapped<T>> {
    return this.#perform('compare_and_set', { options: this.#options, expected, value });
  }

  /** Deletes the value if its version is still the one expected. Versions rise on from there. */
  delete(expected: number): Promise<Swapped<T>> {
    return this.#perform('delete_version', { options: this.#options, expected });
  }

  /**
   * Replaces the value by what `change` makes of it. If somebody was faster, `change` is asked again with what is there by
   * then, after a short random pause, at most `retries` times. `undefined` from `change` leaves everything as it is, and null
   * is answered then.
   *
   * @throws {FencelockError} with code `conflict` if somebody was faster each time
   * @throws {FencelockError} with code `unavailable` that is not `retryable` if whether the value was changed cannot be told
   */
  async update(
    change: (value: T | undefined) => T | undefined | PromiseLike<T | undefined>,
  ): Promise<Snapshot<T> | null> {
    let seen = await this.read();
    for (let tries = 1; ; tries++) {
      const value = await change(seen?.value);
      if (value === undefined) return null;
      const swapped = await this.compareAndSet(seen?.version ?? null, value);
      if ('done' in swapped) return { value, version: swapped.done };
      seen = swapped.changed;
      await this.#perform('back_off', { options: this.#options, tries });
    }
  }

  async #perform<R>(op: string, more: object): Promise<R> {
    return this.#connection.perform<R>({ op, name: this.name, ...more });
  }
}
