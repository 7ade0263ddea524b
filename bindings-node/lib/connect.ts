import { Client } from './client.js';
import { Connection } from './connection.js';
import { here } from './environment.js';
import { invalid } from './error.js';
import { objectOf, optionsForCore } from './names.js';
import type { ClientOptions } from './options.js';
import { appName } from './platform.js';

/** The options of a new client, beside its URL. Options of locks are the defaults of its locks. */
export interface ConnectOptions extends ClientOptions {
  /** The application that people who inspect a lock see; the file name of the script by default. */
  app?: string | undefined;
}

/**
 * Connects to the store a URL names: `memory:` (this process), `sqlite:locks.db` (this machine), `redis://host:6379` and its
 * kin, `etcd://a,b,c`, `zookeeper://a,b,c/locks`, `postgres://user@host/database`, `mysql://`. Options may stand in its query, too:
 * `redis://host?ttl=10s&fair=false`.
 *
 * @throws {FencelockError} with code `invalid` for a URL or option that is not acceptable, `unavailable` if the store cannot
 * be reached, `auth` if it refuses the credentials
 *
 * @example
 * ```ts
 * await using client = await connect('redis://127.0.0.1', { ttl: 10_000 });
 * ```
 */
export async function connect(url: string, options: ConnectOptions = {}): Promise<Client> {
  // A variable that is not set comes as `undefined`, whatever the types say.
  if (!url) throw invalid('url', `the URL is ${url === '' ? 'empty' : String(url)}; is the variable set that it is read from?`);
  const { app = appName(), ...rest } = objectOf(options);
  const text = JSON.stringify(optionsForCore(rest));
  const number = await here().perform<number>((door) => door.connect(String(url), text, app), undefined);
  return new Client(new Connection(number));
}
