import { EventEmitter } from 'node:events';
import type { Connection } from './connection.js';
import { here } from './environment.js';

/**
 * What may happen to a lock of a client.
 *
 * - `waiting`: an acquire has to wait; told once
 * - `trouble`: the store refuses an acquire that waits, or does not answer it; it goes on asking
 * - `granted`: a guard was given out
 * - `renewed`: the lease was pushed on
 * - `released`: a guard was given back
 * - `lost`: a hold was lost before it was given back
 */
export type EventKind = 'waiting' | 'trouble' | 'granted' | 'renewed' | 'released' | 'lost';

/** Something that happened to a lock of a client. */
export interface LockEvent {
  readonly kind: EventKind;
  /** The lock. */
  readonly name: string;
  /** The token of the hold it happened to; null while there is none. */
  readonly token: number | null;
  /** What the trouble is, for the kind `trouble`. */
  readonly trouble: string | null;
}

/** Called with an event. What it throws is uncaught, as with every emitter. */
export type EventListener = (event: LockEvent) => void;

/** The events of one client. As long as somebody listens the client stays; the process does not. */
export class Events {
  readonly #emitter = new EventEmitter();
  readonly #connection: Connection;
  #wanted = false;
  #asks = false;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  on(kind: EventKind, listener: EventListener): void {
    this.#emitter.on(kind, listener);
    this.#wanted = true;
    here().door.listen(this.#connection.number, true);
    if (!this.#asks) this.#ask();
  }

  off(kind: EventKind, listener: EventListener): void {
    this.#emitter.off(kind, listener);
    if (this.#emitter.eventNames().length === 0) this.end();
  }

  /** Nobody listens any more, once what has happened until now is told. */
  end(): void {
    this.#wanted = false;
    here().door.listen(this.#connection.number, false);
  }

  #ask(): void {
    const environment = here();
    this.#asks = true;
    const tell = (value: unknown): void => {
      const events = (value ?? []) as LockEvent[];
      if (events.length > 0 || this.#wanted) this.#ask();
      else this.#asks = false;
      for (const event of events) queueMicrotask(() => this.#emitter.emit(event.kind, event));
    };
    environment.watch(() => environment.door.news(this.#connection.number), this.#connection, tell);
  }
}
