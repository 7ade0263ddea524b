import type { Connection } from './connection.js';
import { Guard, type Granted } from './guard.js';
import type { AcquireOptions } from './lock.js';
import { optionsForCore } from './names.js';
import { infoOf, type Info } from './state.js';

/** The leader of an election. */
export interface Leader {
  /** Its fencing token; null if it is not fencelock's. */
  readonly token: number | null;
  /** The information it gave about itself. */
  readonly info: Info;
}

/** A leader as the core reports it. */
interface Told {
  token: number | null;
  info: string;
}

/** The core's report that each leader was made from: an observer that goes on from a leader compares with that. */
const toldOf = new WeakMap<Leader, Told>();

/**
 * An election: one leader at a time, the next one in the order of candidacy.
 *
 * @example
 * ```ts
 * await using guard = await client.election('scheduler', { info: 'node-1' }).campaign();
 * await schedule(guard.token, guard.signal);
 * ```
 */
export class Election {
  /** The election's name. It is held over the lock of this name. */
  readonly name: string;
  readonly #connection: Connection;
  readonly #options: object;

  /** @internal */
  constructor(connection: Connection, name: string, options: object) {
    this.#connection = connection;
    this.name = name;
    this.#options = optionsForCore(options);
  }

  /**
   * Waits until this candidate leads, for ever or as long as the option `wait` says. To release the guard is to resign.
   *
   * @throws {LockTimeoutError} if the wait has ended before
   * @throws the signal's reason if that aborts
   */
  async campaign(options?: AcquireOptions): Promise<Guard> {
    return this.#guard(await this.#ask<Granted>('campaign', options));
  }

  /** Leads if nobody else does or stands for it; null otherwise. */
  async tryCampaign(options?: AcquireOptions): Promise<Guard | null> {
    const granted = await this.#ask<Granted | null>('try_campaign', options);
    return granted && this.#guard(granted);
  }

  /** The present leader; null if nobody leads. */
  async leader(): Promise<Leader | null> {
    return leaderOf(await this.#connection.perform<Told | null>({ op: 'leader', name: this.name }));
  }

  /**
   * Follows who leads: at once at first, then whenever that has changed, at most one `observe` later. A leader that came and
   * went in between is not told. While the store cannot be reached, it goes on looking.
   *
   * With `after`, what {@link Election.leader} or an observer has told before, it goes on from there.
   *
   * @throws the signal's reason if that aborts
   */
  async *observe(options: { after?: Leader | null; signal?: AbortSignal | null } = {}): AsyncGenerator<Leader | null, never> {
    const { after, signal } = options;
    let seen: Told | null | undefined = after && (toldOf.get(after) ?? { token: after.token, info: JSON.stringify(after.info) });
    for (;;) {
      const more: object = seen === undefined ? {} : { seen };
      const observe = { op: 'observe', name: this.name, options: this.#options, ...more };
      seen = await this.#connection.perform<Told | null>(observe, signal);
      yield leaderOf(seen);
    }
  }

  #ask<T>(op: string, { signal, ...more }: AcquireOptions = {}): Promise<T> {
    const options = { ...this.#options, ...optionsForCore(more) };
    return this.#connection.perform<T>({ op, name: this.name, options }, signal);
  }

  #guard(granted: Granted): Guard {
    return new Guard(this.#connection, granted, this.name).begin();
  }
}

function leaderOf(told: Told | null): Leader | null {
  if (!told) return null;
  const leader = Object.freeze({ token: told.token, info: infoOf(told.info) });
  toldOf.set(leader, told);
  return leader;
}
