// The package the actor speaks through, over the Redis client of that name, or over HTTP.
import { connect as open, http, ioredis, nodeRedis } from 'fencelock-wasm';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { serve } from './rest.js';

export { FencelockError, LockLostError, LockTimeoutError } from 'fencelock-wasm';
export const language = 'wasm';

const transports = {
  // The client itself never connects: what is opened is like it.
  ioredis: (url) => ioredis(new Redis(url, { lazyConnect: true })),
  'node-redis': (url) => nodeRedis(createClient({ url, socket: { reconnectStrategy: 20 } })),
  http: async (url) => http(await serve(url)),
};
const over = transports[process.argv[2]] ?? transports[process.env.FENCELOCK_OVER ?? 'ioredis'];

/** URLs are not for this package, but for the client; the options in them are. */
export async function connect(url, options) {
  if (!url?.startsWith('redis:')) return open(url, options);
  const [server, query] = url.split('?');
  return open(await over(server), { ...Object.fromEntries(new URLSearchParams(query)), ...options });
}
