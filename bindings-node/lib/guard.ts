import type { Connection } from './connection.js';
import { complaint, here, type Begin } from './environment.js';
import { lostBeforeRelease } from './error.js';
import { keep, letGo, mind, unmind, type Remains } from './forgotten.js';
import { Loss } from './loss.js';
import { warn } from './platform.js';

/**
 * How a release ended. A release does not fail, so that it never hides the error of the work that was done under the lock.
 *
 * - `released`: the lock was held until now
 * - `already_lost`: it had been lost before; what was done last was not protected
 * - `unconfirmed`: the store did not answer; the release is repeated until it does or the lease has ended
 */
export type Released = 'released' | 'already_lost' | 'unconfirmed';

/** By this name Node.js asks a value how it is to be printed. */
const INSPECT: unique symbol = Symbol.for('nodejs.util.inspect.custom');

/** A grant as the core reports it. */
export interface Granted {
  guard: number;
  token: number;
  name?: string;
  tokens?: Record<string, number>;
  instant?: number;
}

/**
 * The local proof that a lock, or several as one, or an office is held. It knows its deadline, counted from before the request that won the lock was sent, on
 * a clock that runs through suspend; it stops claiming to be held before the store may give the lock to another.
 *
 * @example
 * ```ts
 * await using guard = await client.lock('orders:42').acquire();
 * await charge(order, guard.token);
 * ```
 */
export class Guard implements AsyncDisposable {
  readonly #connection: Connection;
  readonly #number: number;
  readonly #name: string;
  readonly #token: number;
  readonly #granted: Granted;
  #loss: Loss | undefined;
  #released = false;
  /** Whether somebody has been told that it is lost, or listens for that. */
  #told = false;
  readonly #remains: Remains;

  /** @internal */
  constructor(connection: Connection, granted: Granted, name: string) {
    this.#connection = connection;
    this.#number = granted.guard;
    this.#token = granted.token;
    this.#granted = granted;
    this.#name = name;
    this.#remains = { connection, number: granted.guard, name, lost: false };
    mind(this, this.#remains);
  }

  /** The program uses this guard: from now on no collection ends it. @internal */
  protected use(): void {
    if (!this.#released && !this.#remains.lost) keep(this);
  }

  /** Whether there is still something to keep. @internal */
  stillHeld(): boolean {
    return here().look((door) => door.isHeld(this.#connection.number, this.#number), false);
  }

  /** As `console.log` prints it. @internal */
  [INSPECT](): string {
    return `${this.constructor.name} { name: '${this.#name}', token: ${this.#token} }`;
  }

  /** The lock's name; of several as one, the first in their order. */
  get name(): string {
    this.use();
    return this.#name;
  }

  /**
   * The fencing token: larger than that of every earlier grant of this name (readers that enter a quorum at once may share one).
   * Hand it to the resource with every write. Of several locks as one, that of the first in the order of the names.
   */
  get token(): number {
    this.use();
    return this.#token;
  }

  /** The fencing token of each lock, by its name: of several as one, each resource is handed its own. */
  get tokens(): ReadonlyMap<string, number> {
    this.use();
    return new Map(Object.entries(this.#granted.tokens ?? { [this.#name]: this.#token }));
  }

  /** Whether the lock may be relied on at this very moment: the clock is looked at with every call. */
  get isHeld(): boolean {
    this.use();
    const held = this.stillHeld();
    if (!held) this.#told = true;
    return held;
  }

  /** For how many milliseconds the lock may be relied on if it were not renewed any more; 0 once it is lost or released. */
  get remaining(): number {
    this.use();
    return here().look((door) => door.remaining(this.#connection.number, this.#number), 0);
  }

  /**
   * Throws unless the lock may be relied on at this very moment. For a look right before a write.
   *
   * @throws {LockLostError} if it was lost
   * @throws {FencelockError} with code `not_held` if it was released
   */
  check(): void {
    this.use();
    const error = complaint(this.#connection.number, this.#number);
    if (!error) return;
    this.#told = true;
    throw error;
  }

  /**
   * Something begins under this guard now. One that has ended before, while the thread was busy, is given back, and its error
   * thrown: nothing begins.
   *
   * @internal
   */
  begin(): this {
    const error = complaint(this.#connection.number, this.#number);
    if (!error) return this;
    this.#released = true;
    unmind(this);
    here().look((door) => door.dropGuard(this.#connection.number, this.#number), undefined);
    throw error;
  }

  /** Aborts when the lock is lost, with a {@link LockLostError} as its reason; never, if the guard is released before. */
  get signal(): AbortSignal {
    if (!this.#loss) {
      this.#told = true;
      this.use();
      this.#loss = new Loss(this.#connection, this.#number, () => {
        this.#remains.lost = true;
        letGo(this);
      });
    }
    return this.#loss.signal;
  }

  /**
   * Pushes the end of the lease to at least so many milliseconds from now, which is its length from then on. Never shortens
   * it.
   *
   * @throws {LockLostError} if the lock was lost before
   */
  async extend(ttl: number): Promise<void> {
    this.use();
    await this.#connection.perform({ op: 'extend', guard: this.#number, ttl: Number(ttl) || 0 });
  }

  /**
   * Lets another process go on with the hold: answers a text that {@link Client.adopt} makes the guard of, once, within the lease,
   * which begins anew. From then on this guard is released, and the lock stays held. The text is a secret: whoever has it has the
   * lock. On an error the lock is freed.
   *
   * @throws {FencelockError} with code `unsupported` where a hold lives with its client's session (etcd, ZooKeeper, locks of
   * database sessions), on a quorum, in the layout of another library, and for a lock of a scope
   */
  async transfer(): Promise<string> {
    this.#released = true;
    this.#loss?.end();
    unmind(this);
    return this.#connection.perform<string>({ op: 'transfer', guard: this.#number });
  }

  /**
   * Frees the lock, and tells how that went.
   *
   * @throws {FencelockError} with code `not_held` if the guard was released before
   */
  async release(): Promise<Released> {
    const { number } = this.#connection;
    return this.giveBack((door) => door.release(number, this.#number));
  }

  /**
   * Gives it back in this way.
   *
   * @internal
   */
  protected async giveBack(begin: Begin): Promise<Released> {
    const lost = this.#loss && !this.#released ? complaint(this.#connection.number, this.#number) : undefined;
    this.#released = true;
    this.#loss?.end();
    unmind(this);
    const released = await here().perform<Released>(begin, this.#connection);
    if (released === 'already_lost') this.#loss?.found(lost?.code === 'lost' ? lost : lostBeforeRelease(this.#name, this.#token));
    return released;
  }

  /** @internal */
  protected get connection(): Connection {
    return this.#connection;
  }

  /** @internal */
  get number(): number {
    return this.#number;
  }

  /** Whether it was given back. @internal */
  get released(): boolean {
    return this.#released;
  }

  /**
   * Releases the guard unless that was done. It does not throw, so that it never hides an error of the block; if nobody was
   * told that the lock had been lost, there is a warning.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#released) return;
    const told = this.#told;
    if ((await this.release()) === 'already_lost' && !told) {
      const message =
        `the lock "${this.#name}" was lost before \`await using\` released it; what was done last was not protected. ` +
        'Look at `guard.signal` or `guard.check()`, or use `lock.using()`, which rejects then';
      warn(message, 'FENCELOCK_LOST');
    }
  }
}
