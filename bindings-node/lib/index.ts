/// <reference types="node" preserve="true" />
/// <reference lib="esnext.disposable" preserve="true" />
/** Distributed locks with a fencing token on every grant. See {@link connect}. */
export { connect } from './connect.js';
export { FencelockError, LockLostError, LockTimeoutError } from './error.js';

export type * from './types.js';
