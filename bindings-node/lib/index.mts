/// <reference types="node" preserve="true" />
/// <reference lib="esnext.disposable" preserve="true" />
// One implementation for both module systems, so that `instanceof` and the environment are the same in both.
export { connect, FencelockError, LockLostError, LockTimeoutError } from './index.js';
export type * from './index.js';
