/// <reference lib="esnext.disposable" preserve="true" />
/** Distributed locks with a fencing token on every grant. See {@link connect}. */
export { connect } from './connect.js';
export { FencelockError, LockLostError, LockTimeoutError } from './error.js';
export { http } from './http.js';
export { ioredis } from './ioredis.js';
export { nodeRedis } from './node-redis.js';

export type { HttpOptions } from './http.js';
export type { IORedis } from './ioredis.js';
export type { NodeRedis } from './node-redis.js';
export type { Ended, Transport, Word } from './transport.js';
export type * from './types.js';
