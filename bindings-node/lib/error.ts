/**
 * The stable kind of an error, the same in every language.
 *
 * - `timeout`: the wait ended before the lock was granted; nothing is held
 * - `lost`: the lock was held and is not any more, or can no longer be proved to be
 * - `not_held`: the guard was given back before
 * - `invalid`: a name, option or URL is not acceptable; the message names it
 * - `unsupported`: this store or dialect cannot do what was asked
 * - `unavailable`: the store could not be reached or could not answer; nothing is held
 * - `auth`: the store refused the credentials or the user's rights
 * - `conflict`: what lies under this name is no such lock, or somebody else changed the value meanwhile
 * - `cancelled`: the operation was given up, or something asked for since overtook it
 * - `closed`: the client was closed
 * - `internal`: a defect of fencelock itself
 */
export type Code =
  | 'timeout'
  | 'lost'
  | 'not_held'
  | 'invalid'
  | 'unsupported'
  | 'unavailable'
  | 'auth'
  | 'conflict'
  | 'cancelled'
  | 'closed'
  | 'internal';

/** An error as the core tells it. */
export interface Failure {
  code: Code;
  message: string;
  retryable: boolean;
  fields?: Record<string, string>;
}

/**
 * Every error of fencelock. Look at `code`, show the message to people; neither message nor fields contain a password.
 *
 * @example
 * ```ts
 * try {
 *   await client.lock('orders:42').acquire({ wait: 100 });
 * } catch (error) {
 *   if (!(error instanceof FencelockError) || !error.retryable) throw error;
 * }
 * ```
 */
export class FencelockError extends Error {
  /** The stable kind. */
  readonly code: Code;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** The facts, by name: the lock's `name`, the `argument` that was refused, and so on. */
  readonly fields: Readonly<Record<string, string>>;

  /** @internal */
  constructor(failure: Failure, options?: ErrorOptions) {
    super(failure.message, options);
    this.code = failure.code;
    this.retryable = failure.retryable;
    this.fields = Object.freeze({ ...failure.fields });
  }
}

/** The wait ended before the lock was granted; nothing is held. Its code is `timeout`. */
export class LockTimeoutError extends FencelockError {}

/** The lock was held and is not any more, or can no longer be proved to be. Its code is `lost`. */
export class LockLostError extends FencelockError {}

// By names of their own: those of classes do not survive every bundler.
for (const [name, type] of Object.entries({ FencelockError, LockTimeoutError, LockLostError })) {
  Object.defineProperty(type.prototype, 'name', { value: name, writable: true, configurable: true });
}

/** An argument that is refused before the core is asked. */
export function invalid(argument: string, message: string): FencelockError {
  const fields = { argument };
  return new FencelockError({ code: 'invalid', message: `${message} (argument: ${argument})`, retryable: false, fields });
}

/** The error of a lock that was found lost when it was given back. */
export function lostBeforeRelease(name: string, token: number): LockLostError {
  const message = `the lock was lost before its release; what was done last was not protected (name: ${name}, token: ${token})`;
  return new LockLostError({ code: 'lost', message, retryable: false, fields: { name, token: String(token) } });
}

/** The failure as the class that stands for its code. */
export function errorOf(failure: Failure): FencelockError {
  if (failure.code === 'timeout') return new LockTimeoutError(failure);
  if (failure.code === 'lost') return new LockLostError(failure);
  return new FencelockError(failure);
}
