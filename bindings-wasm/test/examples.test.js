// The code of the README and of what is this package's own compiles and runs as it stands, but for the server.
import { after, before, test } from 'node:test';
import { join } from 'node:path';
import { serve } from '../rest.js';
import { pages, runExamples, SOURCES, typed } from './support/examples.js';
import { onRedis } from './support/stores.js';

/** The declarations that the examples take for granted. */
const around = (url, token) => `
import { connect, http, ioredis } from 'fencelock-wasm';
import { Redis as Client } from 'ioredis';
class Redis extends Client {
  constructor() { super('${url}'); }
}
const [token, module] = ['${token}', undefined];
const charge = async (..._: unknown[]): Promise<void> => {};
`;

onRedis('over Redis', (store) => {
  let server;
  before(async () => (server = await serve(store.url)));
  after(() => server.close());

  test('the examples run', () => {
    const { url, token } = server;
    const files = [join(SOURCES, 'README.md'), ...pages('wasm'), ...typed(join(SOURCES, 'lib'))];
    const adapt = (code) => {
      const here = code.replaceAll('https://example.upstash.io', url);
      return here.includes('using client') ? here : `${here}\n  await client.close();`;
    };
    // The types of the clients are their own affair.
    return runExamples({ files, least: 5, around: around(store.url, token), adapt, lib: ['dom'], skipLibCheck: true });
  });
});
