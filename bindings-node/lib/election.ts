import type { Connection } from './connection.js';
import type { Guard } from './guard.js';
import { Acquirable, type CampaignOptions } from './lock.js';
import { objectOf } from './names.js';
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
export class Election extends Acquirable<CampaignOptions> {
  /** The election's name. It is held over the lock of this name. */
  readonly name: string;

  /** @internal */
  constructor(connection: Connection, name: string, options: object) {
    super(connection, { name }, options, { acquire: 'campaign', try: 'try_campaign' });
    this.name = name;
  }

  /** The same as {@link Election.acquire}: waits until this candidate leads. To release the guard is to resign. */
  campaign(options?: CampaignOptions): Promise<Guard> {
    return this.acquire(options);
  }

  /** The same as {@link Election.tryAcquire}: null if somebody else leads or stands for it. */
  tryCampaign(options?: CampaignOptions): Promise<Guard | null> {
    return this.tryAcquire(options);
  }

  /** The present leader; null if nobody leads. */
  async leader(): Promise<Leader | null> {
    return leaderOf(await this.connection.perform<Told | null>({ op: 'leader', name: this.name, options: this.options() }));
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
    const { after, signal } = objectOf(options);
    let seen: Told | null | undefined = after && (toldOf.get(after) ?? { token: after.token, info: JSON.stringify(after.info) });
    for (;;) {
      const more: object = seen === undefined ? {} : { seen };
      const observe = { op: 'observe', name: this.name, options: this.options(), ...more };
      seen = await this.connection.perform<Told | null>(observe, signal);
      yield leaderOf(seen);
    }
  }
}

function leaderOf(told: Told | null): Leader | null {
  if (!told) return null;
  const leader = Object.freeze({ token: told.token, info: infoOf(told.info) });
  toldOf.set(leader, told);
  return leader;
}
