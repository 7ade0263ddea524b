import type { Connection } from './connection.js';
import { ask, here } from './environment.js';
import { invalid } from './error.js';

/**
 * A kind of event that may happen to a lock of a client.
 *
 * - `waiting`: an acquire has to wait; told once
 * - `long_wait`: an acquire has waited for 30 s; told once
 * - `trouble`: the store refuses an acquire that waits, or does not answer it; it goes on asking
 * - `granted`: a guard was given out
 * - `renewed`: the lease was pushed on
 * - `late_renewal`: the lease was renewed when it had nearly ended: the store or this process is slow
 * - `released`: a guard was given back
 * - `lost`: a hold was lost before it was given back
 * - `broken`: this client has broken a hold of another one
 * - `skipped`: a job was asked for a run, and there is none to start; the token is the last run's
 */
export type EventKind = (typeof KINDS)[number];

const KINDS = [
  'waiting',
  'long_wait',
  'trouble',
  'granted',
  'renewed',
  'late_renewal',
  'released',
  'lost',
  'broken',
  'skipped',
] as const;

/** Something that happened to a lock of a client. */
export interface LockEvent {
  readonly kind: EventKind;
  /** The lock. */
  readonly name: string;
  /** The token of the hold it happened to; null while there is none. */
  readonly token: number | null;
  /** The time, in milliseconds since 1970. */
  readonly at: number;
  /** The number of the acquire in this client, while it waits and with its grant. */
  readonly attempt: number | null;
  /** Milliseconds that an acquire has waited, for `granted` and `long_wait`. */
  readonly waited: number | null;
  /** Milliseconds that a guard had the lock, for `released` and `lost`. */
  readonly held: number | null;
  /** The cause, for `trouble`, `lost`, `late_renewal` and `skipped`. */
  readonly reason: string | null;
  /** The holder, for `long_wait`, if the store says. */
  readonly holder: string | null;
}

/** Called with an event. What it throws is uncaught, as with every emitter. */
export type EventListener = (event: LockEvent) => void;

/** The events of one client. As long as somebody listens the client stays; the process does not. */
export class Events {
  #listeners: readonly { kind: EventKind; listener: EventListener }[] = [];
  readonly #connection: Connection;
  #wanted = false;
  #asks = false;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  on(kind: EventKind, listener: EventListener): void {
    if (!KINDS.includes(kind)) throw invalid('kind', `there is no event \`${String(kind)}\`, but ${KINDS.join(', ')}`);
    if (typeof listener !== 'function') throw new TypeError('a listener is a function');
    this.#listeners = [...this.#listeners, { kind, listener }];
    this.#wanted = true;
    ask((door) => door.listen(this.#connection.number, true));
    if (!this.#asks) this.#ask();
  }

  off(kind: EventKind, listener: EventListener): void {
    const last = this.#listeners.findLastIndex((known) => known.kind === kind && known.listener === listener);
    this.#listeners = this.#listeners.filter((_, at) => at !== last);
    if (this.#listeners.length === 0) this.end();
  }

  /** Nobody listens any more, once what has happened until now is told. */
  end(): void {
    this.#wanted = false;
    here().look((door) => door.listen(this.#connection.number, false), undefined);
  }

  #ask(): void {
    this.#asks = true;
    const tell = (value: unknown, failure?: object): void => {
      if (failure) {
        // Nothing will ever happen any more.
        this.#asks = false;
        return;
      }
      const events = (value ?? []) as LockEvent[];
      if (events.length > 0 || this.#wanted) this.#ask();
      else this.#asks = false;
      for (const event of events) this.#tell(event);
    };
    here().watch((door) => door.news(this.#connection.number), this.#connection, tell);
  }

  #tell(event: LockEvent): void {
    for (const one of this.#listeners.filter(({ kind }) => kind === event.kind)) {
      // On its own, so that what one throws keeps nothing from the others.
      queueMicrotask(() => {
        if (this.#listeners.includes(one)) one.listener(event);
      });
    }
  }
}
