// The package the actor speaks through, over the Redis client of that name, or over HTTP.
import { connect as open, http, ioredis, nodeRedis } from 'fencelock-wasm';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { serve, TOKEN } from './rest.js';

export { FencelockError, LockLostError, LockTimeoutError } from 'fencelock-wasm';
export const language = 'wasm';

const transports = {
  // The client itself never connects: what is opened is like it.
  ioredis: (url) => ioredis(new Redis(url, { lazyConnect: true })),
  // What is opened is made anew by the package, whatever the client would do.
  'node-redis': (url) => nodeRedis(createClient({ url, pingInterval: 1_000, socket: { reconnectStrategy: 60_000 } })),
  http: async (url) => http(await serve(url)),
};
const over = transports[process.argv[2]] ?? transports[process.env.FENCELOCK_OVER ?? 'ioredis'];

/** URLs are not for this package, but for the client; the options in them are. */
export async function connect(url, options) {
  // Served by somebody else.
  if (url?.startsWith('http:')) return open(http({ url, token: TOKEN }), options);
  if (!url?.startsWith('redis:')) return open(url, options);
  const [server, query] = url.split('?');
  return open(await over(server), { ...Object.fromEntries(new URLSearchParams(query)), ...options });
}
