import { Client } from './client.js';
import { Connection } from './connection.js';
import { here } from './environment.js';
import { FencelockError } from './error.js';
import { ended, opened } from './leaving.js';
import { load } from './native.js';
import { objectOf, optionsForCore } from './names.js';
import type { ClientOptions } from './options.js';
import { appName } from './platform.js';
import type { Transport } from './transport.js';
import { Wire } from './wire.js';

/** The options of a new client, beside its store. Options of locks are the defaults of its locks. */
export interface ConnectOptions extends ClientOptions {
  /** The application that people who inspect a lock see; the script's or the page's name by default. */
  app?: string | undefined;
  /**
   * The compiled core, the file `fencelock-wasm/core.wasm`: a `WebAssembly.Module`, its bytes, a response or an address. By default
   * it is the file beside the package's own. The first client's counts.
   */
  module?: object | string | undefined;
}

/**
 * Connects to a Redis server by a {@link Transport}, or to `memory:`, which is this module's own.
 *
 * @throws {FencelockError} with code `invalid` for a URL or option that is not acceptable, `unavailable` if the store cannot
 * be reached, `auth` if it refuses the credentials, `unsupported` if the compiled core cannot be loaded
 *
 * @example
 * ```ts
 * await using client = await connect(http({ url: 'https://example.upstash.io', token }), { ttl: 10_000 });
 * ```
 */
export async function connect(store: string | Transport, options: ConnectOptions = {}): Promise<Client> {
  const { app = appName(), module, ...rest } = objectOf(options);
  await load(await module);
  const text = JSON.stringify(optionsForCore(rest));
  const guarded = (call: () => void): void => here().look((door) => door.guarded(call), undefined);
  const [url, wire] = typeof store === 'string' ? [store, undefined] : ['', wired(store, guarded)];
  if (/^(redis|redlock|sqlite|etcd|zookeeper|postgres|mysql|mariadb)/.test(url)) throw refusal('unsupported');
  const number = await here().perform<number>((door) => door.connect(url, wire, text, String(app)), undefined);
  if (wire) opened(wire, number);
  return new Client(new Connection(number));
}

/** A connection of its own for every client. */
function wired(transport: Transport, guarded: (call: () => void) => void): Wire {
  const is = typeof transport?.send === 'function' && typeof transport.name === 'string';
  if (!is) throw refusal('invalid');
  return new Wire(transport.another?.() ?? transport, guarded, ended);
}

function refusal(code: 'invalid' | 'unsupported'): FencelockError {
  const message =
    'WebAssembly opens no connections and no files of its own: there is `memory:`, and Redis over a transport, `ioredis(client)`, `nodeRedis(client)` or `http({ url, token })`';
  return new FencelockError({ code, message, retryable: false, fields: { argument: 'store' } });
}
