import { run, type Body } from './body.js';
import type { Connection } from './connection.js';
import { Guard, type Granted, type Released } from './guard.js';
import type { AcquireOptions } from './lock.js';
import { camelCased, objectOf, objectWith, optionsForCore } from './names.js';
import type { JobOptions } from './options.js';
import type { Info } from './state.js';

/** The times of a job by the calendar. The WebAssembly package has no time zones, and refuses it with the code `unsupported`. */
export interface Cron {
  /** A cron expression with five fields, `0 3 * * *` for instance. */
  readonly cron: string;
  /** Its time zone by its name in the IANA database, `Europe/Berlin` for instance; UTC by default. */
  readonly timezone?: string | undefined;
}

/** A job's last run, for people who look. Times are milliseconds since 1970, by the store's clock. */
export interface JobState {
  /** How it stands; `in_progress` also if it died. */
  readonly status: 'succeeded' | 'failed' | 'in_progress';
  /** Whether it is in progress but was not seen alive for so long that it counts as dead. */
  readonly dead: boolean;
  /** Its scheduled instant. */
  readonly instant: number;
  /** Its fencing token. */
  readonly token: number;
  /** When it started. */
  readonly started: number;
  /** When it was last seen alive, or ended. */
  readonly seen: number;
  /** The information it gave about itself. */
  readonly info: Info;
}

/**
 * The reason no run was started.
 *
 * - `running`: the last run is in progress
 * - `done`: the instant that is due was run, or its run has died and is not run again
 * - `not_due`: the last run started less than half a period ago, or less than its `atLeastFor`, or it was for a later instant
 */
export type Reason = 'running' | 'done' | 'not_due';

/** The answer of a start that started no run. */
export interface Skipped {
  /** The reason. */
  readonly reason: Reason;
  /**
   * The earliest time at which it is worth asking again, in milliseconds since 1970 by the store's clock. While a run is in
   * progress: when that run counts as dead, if it is not renewed. Null if only the scheduler knows the next instant.
   */
  readonly next: number | null;
  /** The last run, with its holder in `info`. */
  readonly last: JobState;
}

/** The answer of {@link Job.start}: a run, or the reason there is none. */
export type Start =
  | { readonly run: Run; readonly skipped: null }
  | { readonly run: null; readonly skipped: Skipped };

/** The options of one start, beside the job's options. */
export interface StartOptions extends JobOptions, Pick<AcquireOptions, 'signal'> {
  /**
   * Names the run by this instant of the scheduler's own, in milliseconds since 1970, instead of the last one of its schedule
   * by the store's clock. It may lie ahead of that clock by half a period, or a minute.
   */
  at?: number | undefined;
}

/** The same for a call that runs a body. */
export interface UsingOptions extends StartOptions {
  /** Called with the reason if no run is started; the call then answers null. */
  skipped?: ((skipped: Skipped) => void) | undefined;
}

/**
 * A run of a job: a guard that ends with how it went. One that is released, disposed of or collected without having been told its end
 * counts as failed.
 */
export class Run extends Guard {
  readonly #instant: number;

  /** @internal */
  constructor(connection: Connection, granted: Granted, name: string) {
    super(connection, granted, name);
    this.#instant = granted.instant ?? 0;
  }

  /** The scheduled instant, in milliseconds since 1970 (UTC). */
  get instant(): number {
    this.use();
    return this.#instant;
  }

  /** Marks the run as succeeded, and tells how that went. `already_lost`: it counted as dead before. */
  succeed(): Promise<Released> {
    const { connection } = this;
    const text = JSON.stringify({ op: 'release', guard: this.number, succeeded: true });
    return this.giveBack((door) => door.submit(connection.number, text));
  }

  /** Marks the run as failed. */
  fail(): Promise<Released> {
    return this.release();
  }
}

/**
 * A scheduled job: at most one run in each period, whoever of the fleet asks, and no two starts within half a period. A run that
 * died is not run again for the same instant, unless the option `retryDead` says so: it may have done its work.
 *
 * @example
 * ```ts
 * await client.job('cleanup', 24 * 3600_000).using(async (run, signal) => cleanUp(run.token, signal), {
 *   skipped: ({ reason }) => console.log(`nothing to do: ${reason}`),
 * });
 * ```
 */
export class Job {
  /** The job's name. */
  readonly name: string;
  /** Its period, in milliseconds, or its times by the calendar. */
  readonly schedule: number | Cron;
  readonly #connection: Connection;
  readonly #options: object;

  /** @internal */
  constructor(connection: Connection, name: string, schedule: number | Cron, options: object) {
    this.#connection = connection;
    this.name = name;
    this.schedule = schedule;
    this.#options = optionsForCore(options);
  }

  /**
   * Starts the run that is due, or says why there is none: the last one is in progress, this one was run, or none is due.
   *
   * @example
   * ```ts
   * const { run, skipped } = await client.job('cleanup', 24 * 3600_000).start();
   * if (run) await run.succeed();
   * else console.log(`nothing to do: ${skipped.reason}`);
   * ```
   */
  async start(options: StartOptions = {}): Promise<Start> {
    const { signal, at, ...more } = objectOf(options);
    const all = { ...this.#options, ...optionsForCore(more) };
    const { schedule } = this;
    const times = schedule && typeof schedule === 'object' ? objectWith(schedule, 'schedule', 'cron', 'timezone') : { period: schedule };
    const start = { ...times, op: 'start_job', name: this.name, at: at ?? null, options: all };
    const started = await this.#connection.perform<Granted | { skipped: Skipped }>(start, signal);
    if ('guard' in started) return { run: new Run(this.#connection, started, this.name).begin(), skipped: null };
    return { run: null, skipped: { ...started.skipped, last: shown(started.skipped.last) } };
  }

  /**
   * Runs `body` if a run is due, and answers null if it is not; the option `skipped` is called with the reason. The run has succeeded if the
   * body does; it has failed if the body throws. When the run is lost, the body's signal aborts and the call rejects with a
   * {@link LockLostError}.
   */
  async using<T>(body: Body<Run, T>, options: UsingOptions = {}): Promise<T | null> {
    const { skipped, ...more } = objectOf(options);
    const start = await this.start(more);
    if (start.run) {
      return run(start.run, body, more.signal, (due, well) => (well ? due.succeed() : due.fail()));
    }
    skipped?.(start.skipped);
    return null;
  }

  /** The last run, as the store remembers it; null if there was none. */
  async inspect(): Promise<JobState | null> {
    const inspect = { op: 'inspect_job', name: this.name };
    const state = await this.#connection.perform<JobState | null>(inspect);
    return state && shown(state);
  }
}

function shown(state: JobState): JobState {
  return { ...camelCased<JobState>(state), info: state.info };
}
