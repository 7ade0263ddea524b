import { run, type Body } from './body.js';
import type { Connection } from './connection.js';
import { Guard, type Granted, type Released } from './guard.js';
import type { AcquireOptions } from './lock.js';
import { camelCased, optionsForCore } from './names.js';
import type { Info } from './state.js';

/** A job's last run, for people who look. Times are milliseconds since 1970, by the store's clock. */
export interface JobState {
  /** `S`: it has succeeded, `F`: it has failed, `P`: it is in progress, or died. */
  readonly status: 'S' | 'F' | 'P';
  /** Whether it is in progress but was not heard of for so long that it counts as dead. */
  readonly dead: boolean;
  /** Its scheduled instant. */
  readonly instant: number;
  /** Its fencing token. */
  readonly token: number;
  /** When it started. */
  readonly started: number;
  /** When it was last heard of, or ended. */
  readonly heard: number;
  /** What it said of itself. */
  readonly info: Info;
}

/** What a start may be told beside the job's options. */
export interface StartOptions extends AcquireOptions {
  /**
   * Names the run by this instant of the scheduler's own, in milliseconds since 1970, instead of the multiple of the period
   * that is nearest to the store's clock.
   */
  at?: number;
}

/** A run of a job. One that is disposed of, or collected, without having been told its end counts as failed. */
export class Run extends Guard {
  /** The scheduled instant, in milliseconds since 1970 (UTC). */
  readonly instant: number;

  /** @internal */
  constructor(connection: Connection, granted: Granted, name: string) {
    super(connection, granted, name);
    this.instant = granted.instant ?? 0;
  }

  /** Marks the run as succeeded, and tells how that went. `already_lost`: it counted as dead before. */
  succeed(): Promise<Released> {
    return this.#end(true);
  }

  /** Marks the run as failed. */
  fail(): Promise<Released> {
    return this.#end(false);
  }

  /**
   * A run is not released: say how it ended. It is always refused.
   *
   * @throws {FencelockError} with code `invalid`; `not_held` if its end was told before
   */
  override release(): Promise<never> {
    return this.connection.perform({ op: 'release', guard: this.number });
  }

  /** @internal */
  protected override dispose(): Promise<Released> {
    return this.fail();
  }

  #end(succeeded: boolean): Promise<Released> {
    const { connection } = this;
    const text = JSON.stringify({ op: 'end_job', guard: this.number, succeeded });
    return this.giveBack((door) => door.submit(connection.number, text));
  }
}

/**
 * A scheduled job: at most one run in each period, whoever of the fleet asks. A run that died is not run again for the same
 * instant, unless the option `retryDead` says so: it may have done its work.
 *
 * @example
 * ```ts
 * await client.job('cleanup', 24 * 3600_000).using(async (run, signal) => cleanUp(run.token, signal));
 * ```
 */
export class Job {
  /** The job's name. */
  readonly name: string;
  /** Its period, in milliseconds. */
  readonly period: number;
  readonly #connection: Connection;
  readonly #options: object;

  /** @internal */
  constructor(connection: Connection, name: string, period: number, options: object) {
    this.#connection = connection;
    this.name = name;
    this.period = period;
    this.#options = optionsForCore(options);
  }

  /** Starts the run that is due; null if it was started before, by whomever, or the last one still lasts. */
  async start({ signal, at, ...more }: StartOptions = {}): Promise<Run | null> {
    const options = { ...this.#options, ...optionsForCore(more) };
    const start = { op: 'start_job', name: this.name, period: this.period, at: at ?? null, options };
    const granted = await this.#connection.perform<Granted | null>(start, signal);
    return granted && new Run(this.#connection, granted, this.name);
  }

  /**
   * Runs `body` if a run is due, and answers null if it is not. The run has succeeded if the body does; it has failed if the
   * body throws. When the run is lost, the body's signal aborts and the call rejects with a {@link LockLostError}.
   */
  async using<T>(body: Body<Run, T>, options?: StartOptions): Promise<T | null> {
    const started = await this.start(options);
    if (!started) return null;
    return run(started, body, options?.signal, (due, well) => (well ? due.succeed() : due.fail()));
  }

  /** The last run, as the store remembers it; null if there was none. */
  async inspect(): Promise<JobState | null> {
    const inspect = { op: 'inspect_job', name: this.name, period: this.period };
    const state = await this.#connection.perform<JobState | null>(inspect);
    return state && { ...camelCased<JobState>(state), info: state.info };
  }
}
