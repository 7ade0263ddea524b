import { run, type Body } from './body.js';
import type { Connection } from './connection.js';
import { Guard, type Granted } from './guard.js';
import { objectOf, optionsForCore } from './names.js';
import type { LockOptions, WaitOptions } from './options.js';
import type { Scope } from './scope.js';
import { stateOf, type LockState } from './state.js';

/** The options of one acquire, beside the lock's options. */
export interface AcquireOptions extends LockOptions {
  /**
   * Gives the acquire up when it aborts: the promise rejects with the signal's reason, and nothing stays behind. A grant
   * that crosses is given back.
   */
  signal?: AbortSignal | null | undefined;
}

/** The options of one campaign, beside the election's options. */
export interface CampaignOptions extends WaitOptions, Pick<AcquireOptions, 'signal'> {}

/** As what a lock is asked for. */
export interface Form {
  readonly mode?: string;
  readonly permits?: number;
  readonly scope?: number;
}

/** The subject of an acquire. */
type Subject = Form & { readonly name?: string; readonly names?: readonly string[] };

/** The common base of one lock, of several as one and of an election; with the options of one acquire. */
export abstract class Acquirable<Options extends CampaignOptions> {
  /** @internal */
  protected readonly connection: Connection;
  readonly #subject: Subject;
  readonly #options: object;
  /** The operations of the plain calls, made once. */
  readonly #plain = new Map<string, string>();
  readonly #operations: { acquire: string; try: string };

  /** @internal */
  constructor(connection: Connection, subject: Subject, options: object, operations: { acquire: string; try: string }) {
    this.connection = connection;
    this.#subject = subject;
    this.#options = optionsForCore(options);
    this.#operations = operations;
  }

  /**
   * Waits for the lock, for ever or as long as the option `wait` says, and keeps the process alive meanwhile.
   *
   * @throws {LockTimeoutError} if the wait has ended before
   * @throws {LockLostError} if it was granted and lost again while this thread was too busy to be told
   * @throws the signal's reason if that aborts
   * @throws {FencelockError} with code `invalid` if the name or an option is not acceptable
   *
   * @example
   * ```ts
   * await using guard = await client.lock('orders:42').acquire({ wait: 5000, signal: AbortSignal.timeout(10_000) });
   * ```
   */
  async acquire(options?: Options): Promise<Guard> {
    return this.#guard(await this.#ask<Granted>(this.#operations.acquire, options));
  }

  /**
   * Asks once, or waits as long as the `wait` of this call says: null if somebody else holds the lock all the while. A lock's own option
   * `wait` does not count here.
   */
  async tryAcquire(options?: Options): Promise<Guard | null> {
    const { wait, ...more } = objectOf(options ?? {}) as CampaignOptions;
    const granted = await this.#ask<Granted | null>(this.#operations.try, more, wait == null ? {} : { wait });
    return granted && this.#guard(granted);
  }

  /**
   * Runs `body` under the lock and releases it, whatever comes of that.
   *
   * When the lock is lost, the body's signal aborts and the call rejects with a {@link LockLostError}; JavaScript cannot end
   * a body that does not look at its signal, so that one runs on. Under a lock that is lost already no body begins. An error of the body's own is never hidden.
   *
   * @example
   * ```ts
   * await client.lock('report').using(async (guard, signal) => {
   *   const pages = await fetch(source, { signal });
   *   await write(pages, guard.token);
   * });
   * ```
   */
  async using<T>(body: Body<Guard, T>, options?: Options): Promise<T> {
    return run(await this.acquire(options), body, options?.signal, (guard) => guard.release());
  }

  #guard(granted: Granted): Guard {
    const [first] = Object.entries(granted.tokens ?? {}).find(([, token]) => token === granted.token) ?? [this.#subject.name ?? ''];
    return new Guard(this.connection, granted, first).begin();
  }

  /** The options with those of one call. @internal */
  protected options(more?: object): object {
    return more ? { ...this.#options, ...optionsForCore(more) } : this.#options;
  }

  #ask<T>(op: string, options: CampaignOptions = {}, facts: object = {}): Promise<T> {
    const { signal, ...more } = objectOf(options);
    return this.connection.performText<T>(this.#operation(op, more, facts), signal);
  }

  #operation(op: string, more: object, facts: object): string {
    const text = (): string => JSON.stringify({ op, ...this.#subject, ...facts, options: this.options(more) });
    if (Object.keys(more).length > 0 || Object.keys(facts).length > 0) return text();
    const plain = this.#plain.get(op) ?? text();
    this.#plain.set(op, plain);
    return plain;
  }
}

/**
 * A lock by name, made by a {@link Client}. It is no more than a name with options: acquire it as often as you like. A wrong
 * name or option is told by the acquire.
 */
export class Lock extends Acquirable<AcquireOptions> {
  /** The lock's name. */
  readonly name: string;
  /** The scope that may enter it again, if it was made by one. */
  readonly scope: Scope | undefined;
  readonly #form: Form;

  /** @internal */
  constructor(connection: Connection, name: string, form: Form, options: object, scope?: Scope) {
    super(connection, { name, ...form }, options, { acquire: 'acquire', try: 'try_acquire' });
    this.name = name;
    this.scope = scope;
    this.#form = form;
  }

  /** Whether anybody holds the lock now; of a semaphore, any permit. By the time of the answer that may have changed. */
  async isLocked(): Promise<boolean> {
    return this.connection.perform<boolean>({ op: 'is_locked', name: this.name, ...this.#form, options: this.options() });
  }

  /** The holders of the lock and its waiters. Changes nothing. */
  async inspect(): Promise<LockState> {
    const options = this.options();
    return stateOf(await this.connection.perform({ op: 'inspect', name: this.name, options }));
  }
}

/** Several mutexes that are acquired as one, all or none. However they are named, no two callers wait for each other. */
export class All extends Acquirable<AcquireOptions> {
  /** The names. */
  readonly names: readonly string[];

  /** @internal */
  constructor(connection: Connection, names: readonly string[], options: object) {
    super(connection, { names }, options, { acquire: 'acquire_all', try: 'try_acquire_all' });
    this.names = names;
  }
}
