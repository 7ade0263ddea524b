import type { Connection } from './connection.js';
import { ask, here } from './environment.js';
import { invalid } from './error.js';
import { warn } from './platform.js';

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
  /** Whether the program warns of it. */
  readonly warning: boolean;
  /** The text of that warning. */
  readonly text: string;
}

/** Called with an event. What it throws is uncaught, as with every emitter. */
export type EventListener = (event: LockEvent) => void;

/** Those whose events somebody wants: they and their clients stay; the process does not. */
const wanted = new Set<Events>();

/** The events of one client. Warnings are told to whoever runs the program, all to those who listen. */
export class Events {
  #listeners: readonly { kind: EventKind; listener: EventListener }[] = [];
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
    hear(connection.number, new WeakRef(this));
  }

  on(kind: EventKind, listener: EventListener): void {
    if (!KINDS.includes(kind)) throw invalid('kind', `there is no event \`${String(kind)}\`, but ${KINDS.join(', ')}`);
    if (typeof listener !== 'function') throw new TypeError('a listener is a function');
    this.#listeners = [...this.#listeners, { kind, listener }];
    wanted.add(this);
    ask((door) => door.listen(this.#connection.number, true));
  }

  off(kind: EventKind, listener: EventListener): void {
    const last = this.#listeners.findLastIndex((known) => known.kind === kind && known.listener === listener);
    this.#listeners = this.#listeners.filter((_, at) => at !== last);
    if (this.#listeners.length > 0) return;
    wanted.delete(this);
    here().look((door) => door.listen(this.#connection.number, false), undefined);
  }

  /** Nothing more happens, once what has happened until now is told. */
  end(): void {
    here().look((door) => door.listen(this.#connection.number, null), undefined);
  }

  /** @internal */
  tell(event: LockEvent): void {
    for (const one of this.#listeners.filter(({ kind }) => kind === event.kind)) {
      // On its own, so that what one throws keeps nothing from the others.
      queueMicrotask(() => {
        if (this.#listeners.includes(one)) one.listener(event);
      });
    }
  }
}

/** Waits for what happens to a client. It keeps neither the client nor the process. */
function hear(number: number, events: WeakRef<Events>): void {
  const tell = (value: unknown): void => {
    const news = (value ?? []) as LockEvent[];
    const told = events.deref();
    if (news.length === 0) {
      if (told) wanted.delete(told);
      return;
    }
    hear(number, events);
    for (const event of news) {
      if (event.warning) warn(event.text, `FENCELOCK_${event.kind.toUpperCase()}`);
      told?.tell(event);
    }
  };
  here().watch((door) => door.news(number), undefined, tell);
}
