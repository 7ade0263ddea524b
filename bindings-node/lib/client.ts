import type { Connection } from './connection.js';
import { Election } from './election.js';
import { Events, type EventKind, type EventListener } from './event.js';
import { Gate } from './gate.js';
import { Guard, type Granted } from './guard.js';
import { Job, type Cron } from './job.js';
import { All, Lock, type Form } from './lock.js';
import { camelCased, objectOf, objectWith } from './names.js';
import type { ClientOptions, ElectionOptions, JobOptions, LockOptions, VersionOptions } from './options.js';
import { Scope } from './scope.js';
import { holdersOf, type Holder } from './state.js';
import { Version } from './version.js';

/** The abilities of the store, and the failures that this configuration survives. */
export interface Guarantees {
  /** The store's name: `redis`, `sqlite`, `memory`. */
  readonly store: string;
  /** How far the order of tokens reaches: as long as the data, or beyond, as far as the clock does not step back. */
  readonly fence: string;
  /** Dialects this store speaks beside its own layout. */
  readonly dialects: readonly string[];
  /** Whether holders that are not fencelock's may stand on the store. */
  readonly foreignHolders: boolean;
  /** Why the store cannot serve waiters of different clients in order, if it cannot. */
  readonly unordered: string | null;
  /** The effect of each kind of failure on the promises, in words. */
  readonly guarantees: readonly { readonly when: string; readonly then: string }[];
}

/** The numbers of operations, guards and locks that a client carries; all 0 at rest. */
export interface Stats {
  /** Operations under way. */
  readonly running: number;
  /** Completions that JavaScript has not received yet. */
  readonly done: number;
  /** Guards that were not released. */
  readonly guards: number;
  /** Attempts, tickets and holds. */
  readonly entries: number;
  /** The locks of those. */
  readonly locks: number;
}

/** A connection to one store, and its locks. It never keeps the process alive; a promise of its own that is awaited does. */
export class Client implements AsyncDisposable {
  readonly #connection: Connection;
  readonly #events: Events;

  /** @internal */
  constructor(connection: Connection) {
    this.#connection = connection;
    this.#events = new Events(connection);
  }

  /** A mutex by name: 1 to 512 bytes of UTF-8 without control characters, not beginning with `fencelock:`. The same name is the same lock in every language. */
  lock(name: string, options: LockOptions = {}): Lock {
    return this.#lock(name, {}, options);
  }

  /** The reading side of a read-write lock: any number of readers, no writer beside them. A writer that waits is not passed. */
  readLock(name: string, options: LockOptions = {}): Lock {
    return this.#lock(name, { mode: 'read' }, options);
  }

  /** The writing side of a read-write lock: nobody beside it. */
  writeLock(name: string, options: LockOptions = {}): Lock {
    return this.#lock(name, { mode: 'write' }, options);
  }

  /** A semaphore: at most `limit` holders at once. The permit of a holder that died comes back when its lease has ended. */
  semaphore(name: string, limit: number, options: LockOptions = {}): Lock {
    return this.#lock(name, { mode: 'permit', permits: limit }, options);
  }

  /** Several mutexes as one: all or none, in an order that is the same for everybody. */
  all(names: Iterable<string>, options: LockOptions = {}): All {
    return new All(this.#connection, [...names], options);
  }

  /** A mutex that may be entered again through this very value: a lock in a {@link Client.scope} of its own. */
  reentrant(name: string, options: LockOptions = {}): Lock {
    return this.scope().lock(name, options);
  }

  /** A new scope: whoever holds a lock in it may enter again. */
  scope(): Scope {
    return new Scope(this.#connection);
  }

  /** An election: one leader at a time. */
  election(name: string, options: ElectionOptions = {}): Election {
    return new Election(this.#connection, name, options);
  }

  /**
   * A scheduled job: at most one run in each period (milliseconds, 10 or longer), or for each time of a cron expression, whoever
   * asks for it.
   *
   * @example
   * ```ts
   * client.job('import', 3600_000);
   * client.job('cleanup', { cron: '0 3 * * *', timezone: 'Europe/Berlin' });
   * ```
   */
  job(name: string, schedule: number | Cron, options: JobOptions = {}): Job {
    return new Job(this.#connection, name, schedule, options);
  }

  /** A value that is replaced only if nobody was faster. */
  version<T = unknown>(name: string, options: VersionOptions = {}): Version<T> {
    return new Version<T>(this.#connection, name, options);
  }

  /** Writes of keys on this client's Redis server that refuse stale tokens. */
  gate(): Gate {
    return new Gate(this.#connection);
  }

  /** The names of the locks the store knows that begin like this, in order. */
  async names(prefix = ''): Promise<string[]> {
    return this.#connection.perform<string[]>({ op: 'names', prefix });
  }

  /**
   * The guard of a hold that another process has let go of by {@link Guard.transfer}, with its token.
   *
   * @throws {FencelockError} with code `not_held` if the text was used before, is too old or of another store, with `invalid` if it
   * is no such text
   */
  async adopt(text: string): Promise<Guard> {
    const granted = await this.#connection.perform<Granted>({ op: 'adopt', text: String(text) });
    return new Guard(this.#connection, granted, granted.name ?? '').begin();
  }

  /**
   * Ends every hold of a lock, a read-write lock or a semaphore, or only those with a token; for holders that hang. Answers the
   * holds that it ended. The next waiter is granted, with a greater token. A holder finds the loss with its next renewal, after a
   * third of its lease at the latest; the fence refuses what it writes meanwhile. `reason` goes into the event and the log.
   *
   * @throws {FencelockError} with code `not_held` if nobody holds it, with `unsupported` if another library or a session of a
   * database server does, with nothing changed
   */
  async breakLock(name: string, reason = '', options: { token?: number } = {}): Promise<readonly Holder[]> {
    const { token } = objectWith(objectOf(options), 'options', 'token');
    return holdersOf(await this.#connection.perform({ op: 'break_lock', name, reason, token }));
  }

  /** Asks the store for nothing, and answers the milliseconds that took; for health checks. It rejects as any request does, within `timeout`. */
  async ping(): Promise<number> {
    return this.#connection.perform<number>({ op: 'ping' });
  }

  /** The abilities of the store and the failures that this configuration survives, in words. */
  guarantees(): Guarantees {
    return camelCased<Guarantees>(this.#connection.about().guarantees);
  }

  /** The options of this client, which are the defaults of its locks. Times in milliseconds, null for what has no end. */
  get options(): Readonly<Required<ClientOptions>> {
    return camelCased<Required<ClientOptions>>(this.#connection.about().options);
  }

  /** The numbers of operations, guards and locks that the client carries; all 0 at rest. */
  stats(): Stats {
    return this.#connection.about().load as Stats;
  }

  /** Calls `listener` whenever this happens to a lock of this client. */
  on(kind: EventKind, listener: EventListener): this {
    this.#events.on(kind, listener);
    return this;
  }

  /** Takes a listener away. */
  off(kind: EventKind, listener: EventListener): this {
    this.#events.off(kind, listener);
    return this;
  }

  /**
   * Refuses new acquires, gives up those under way, frees what is held (guards that still live are lost from now on), waits
   * until the store has confirmed that, at most two seconds, and disconnects.
   */
  async close(): Promise<void> {
    await this.#connection.perform({ op: 'close' });
    this.#events.end();
  }

  /** The same as {@link Client.close}. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #lock(name: string, form: Form, options: LockOptions): Lock {
    return new Lock(this.#connection, name, form, options);
  }
}
