import { camelCased } from './names.js';

/**
 * How a lock is held: alone (`exclusive`), as one of many readers (`read`), alone beside nobody who reads (`write`), or as
 * one of so many permits (`permit`).
 */
export type Mode = 'exclusive' | 'read' | 'write' | 'permit';

/** The information that a holder or waiter gave about itself: `host`, `pid`, `app`, `language`, and the option `info`. */
export type Info = Readonly<Record<string, unknown>>;

/** A holder, for people who look. */
export interface Holder {
  readonly mode: Mode;
  /** Its fencing token; null for a holder that is not fencelock's. */
  readonly token: number | null;
  /** The time left of its lease, in milliseconds; null if it has no end. */
  readonly left: number | null;
  /** For how long it has held, in milliseconds; null if the store does not know. */
  readonly heldFor: number | null;
  readonly info: Info;
}

/** A waiter, for people who look. */
export interface Waiter {
  readonly mode: Mode;
  readonly info: Info;
  /** For how long it has been in the queue, in milliseconds. */
  readonly waitingFor: number;
}

/** A lock as it lies on the store. */
export interface LockState {
  /** The kind that the lock is in use as. */
  readonly kind: 'mutex' | 'read_write' | 'semaphore';
  /** The present holders, in the order of their tokens. */
  readonly holders: readonly Holder[];
  /** The newest token drawn. */
  readonly last: number;
  /** The queue, head first. */
  readonly waiters: readonly Waiter[];
}

/** The information that a client gave about itself. Text of other libraries that is not such JSON gives an empty one. */
export function infoOf(text: unknown): Info {
  try {
    const info = JSON.parse(String(text)) as unknown;
    return typeof info === 'object' && info !== null ? (info as Info) : {};
  } catch {
    return {};
  }
}

/** Holders as the core tells them. */
export function holdersOf(holders: unknown): readonly Holder[] {
  return camelCased<Holder[]>(holders).map((one) => ({ ...one, info: infoOf(one.info) }));
}

/** A state of the core's with JavaScript's names. */
export function stateOf(state: unknown): LockState {
  const { holders, waiters, ...rest } = camelCased<LockState>(state);
  const told = <T extends { info: unknown }>(one: T): T => ({ ...one, info: infoOf(one.info) });
  return { ...rest, holders: holders.map(told), waiters: waiters.map(told) };
}
