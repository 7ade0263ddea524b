import type { Connection } from './connection.js';

/**
 * Writes keys on the Redis server of a client, each only with a token that is not older than the newest one that has written it. Made by
 * {@link Client.gate}.
 *
 * The check and the write are one script. An older token rejects with a {@link LockLostError}, and nothing is written; equal ones
 * pass. The token may be that of a lock on any other store. Beside every key `K` that was written so lies its newest token, under
 * `fencelock:{tag}:gate:K` and without an end: delete it together with the key.
 */
export class Gate {
  readonly #connection: Connection;

  /** @internal */
  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Sets a key to a text. */
  async set(key: string, token: number, value: string): Promise<void> {
    await this.#write(key, token, { set: value });
  }

  /** Deletes a key; whether it was there. */
  async delete(key: string, token: number): Promise<boolean> {
    return this.#write<boolean>(key, token, 'delete');
  }

  /** Adds to a whole number, which is 0 if the key is not there; the sum. */
  async increment(key: string, token: number, by = 1): Promise<number> {
    return this.#write<number>(key, token, { increment: by });
  }

  async #write<T>(resource: string, token: number, write: unknown): Promise<T> {
    return this.#connection.perform<T>({ op: 'gate', resource, token, write });
  }
}
