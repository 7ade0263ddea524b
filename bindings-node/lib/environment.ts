import { onAbort } from './cancellation.js';
import { internal, sound } from './defect.js';
import { errorOf, FencelockError, type Failure } from './error.js';
import { leavesAtExit } from './leaving.js';
import { open, type Door } from './native.js';

/** Called with how an operation ended: with a value, or with a failure. */
type End = (value: unknown, failure: Failure | undefined) => void;

/** The number of an operation that has ended, and how. */
type Ended = [number, unknown, Failure?];

/** An operation under way. */
interface Awaited {
  readonly end: End;
  /** An object that must not be collected before the operation ends. */
  readonly keeps: object | undefined;
  /** Whether somebody waits for it, so that the process has to stay. */
  readonly counts: boolean;
  unfollow: (() => void) | undefined;
}

const GONE: Failure = { code: 'closed', message: 'this environment is ending; nothing can be asked for any more', retryable: false };

/** Asks the core for something, and answers its number. */
export type Begin = (door: Door) => number;

/**
 * The state that this thread shares: the way to the core, and the operations under way. There is one for the main thread and
 * for each worker.
 */
class Environment {
  /** An exception from it is a defect; only this class calls it. */
  readonly #door: Door = open(() => this.#drain());
  readonly #awaited = new Map<number, Awaited>();
  #counted = 0;
  /** Whether this turn has asked for something. */
  #asked = false;

  constructor() {
    leavesAtExit((leave) => this.look(leave, undefined));
  }

  /**
   * Sets an operation off and waits for it, and keeps the process alive until then. An abort of the signal rejects with its
   * reason, as the platform does, and gives the operation up.
   */
  async perform<T>(begin: Begin, keeps: object | undefined, signal?: AbortSignal | null): Promise<T> {
    signal?.throwIfAborted();
    const ended = await new Promise<{ value: unknown; failure: Failure | undefined }>((resolve, reject) => {
      const operation = this.#begin(begin, keeps, true, (value, failure) => resolve({ value, failure }));
      const awaited = this.#awaited.get(operation);
      if (signal && awaited) {
        awaited.unfollow = onAbort(signal, () => {
          this.forget(operation);
          reject(signal.reason as Error);
        });
      }
    });
    // Made here, where the caller is still on the stack.
    if (ended.failure) throw errorOf(ended.failure);
    return ended.value as T;
  }

  /** Sets an operation off that nobody waits for, so that the process may end meanwhile. Answers its number. */
  watch(begin: Begin, keeps: object | undefined, end: End): number {
    return this.#begin(begin, keeps, false, end);
  }

  /** Gives an operation up; its end is not told. Whatever it won is given back. */
  forget(operation: number): void {
    if (this.#take(operation)) {
      this.#giveUp(operation);
      this.#rest();
    }
  }

  #giveUp(operation: number): void {
    this.look((door) => door.forget(operation), undefined);
  }

  /** Asks the core for what it answers at once. */
  ask<T>(question: (door: Door) => T): T {
    return sound(() => question(this.#door));
  }

  /** The same for what has an answer even after a defect. */
  look<T>(question: (door: Door) => T, broken: T): T {
    try {
      return question(this.#door);
    } catch {
      return broken;
    }
  }

  #begin(begin: Begin, keeps: object | undefined, counts: boolean, end: End): number {
    let operation = 0;
    try {
      operation = begin(this.#door);
      if (operation !== 0 && counts && this.#counted === 0) this.#door.hold(true);
    } catch (defect) {
      if (operation !== 0) this.#giveUp(operation);
      end(undefined, internal(defect));
      return 0;
    }
    if (operation === 0) {
      end(undefined, GONE);
      return 0;
    }
    if (counts) this.#counted++;
    if (!this.#asked) {
      this.#asked = true;
      // Nobody replaces promises by a clock of a test's, as happens to the other ways to be called later.
      void Promise.resolve().then(() => this.#setOff());
    }
    this.#awaited.set(operation, { end, keeps, counts, unfollow: undefined });
    return operation;
  }

  /** Sets off together what was asked for while this one waited for its turn. */
  #setOff(): void {
    this.#asked = false;
    try {
      this.#door.setOff();
    } catch (defect) {
      this.#tell(this.#failed(defect));
    }
  }

  #take(operation: number): Awaited | undefined {
    const awaited = this.#awaited.get(operation);
    if (!awaited) return undefined;
    this.#awaited.delete(operation);
    awaited.unfollow?.();
    if (awaited.counts) this.#counted--;
    return awaited;
  }

  /** Lets the process go when nobody waits any more. */
  #rest(): void {
    if (this.#counted === 0) this.look((door) => door.hold(false), undefined);
  }

  #drain(): void {
    let ends: Ended[];
    try {
      ends = JSON.parse(this.#door.drain()) as Ended[];
    } catch (defect) {
      ends = this.#failed(defect);
    }
    this.#tell(ends);
  }

  /** After a defect nobody would ever be told anything any more. What is won all the same is given back. */
  #failed(defect: unknown): Ended[] {
    const failure = internal(defect);
    const ends = [...this.#awaited.keys()].map((operation): Ended => [operation, null, failure]);
    for (const [operation] of ends) this.#giveUp(operation);
    return ends;
  }

  #tell(ends: Ended[]): void {
    // All are taken before the first is told: what is granted here cannot be given up any more by who hears of another.
    const told = ends.map(([operation, value, failure]) => ({ awaited: this.#take(operation), value, failure }));
    this.#rest();
    for (const { awaited, value, failure } of told) awaited?.end(value, failure);
  }
}

let environment: Environment | undefined;

/** This thread's environment, made at its first use. */
export function here(): Environment {
  return (environment ??= sound(() => new Environment()));
}

/** Asks the core for what it answers at once. */
export function ask<T>(question: (door: Door) => T): T {
  return here().ask(question);
}

/** The error of a guard that may not be relied on; nothing if it may. One that nobody can tell of is not relied on. */
export function complaint(client: number, guard: number): FencelockError | undefined {
  try {
    const failure = ask((door) => door.check(client, guard));
    return failure ? errorOf(JSON.parse(failure) as Failure) : undefined;
  } catch (defect) {
    return defect as FencelockError;
  }
}
