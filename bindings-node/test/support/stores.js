// The stores every test of locks is run on.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe } from 'node:test';
import { Redis } from './redis.js';

/** The language that holders state in their description. */
export const LANGUAGE = process.env.FENCELOCK_LANGUAGE ?? 'node';

/** Those the package has. */
const STORES = (process.env.FENCELOCK_STORES ?? 'memory,sqlite,redis').split(',');

let names = 0;

/** A name nobody else in this process uses. */
export function fresh(what = 'lock') {
  return `${what}:${++names}`;
}

const describers = {
  memory: (title, body) => describe(title, () => body({ name: 'memory', url: `memory:${fresh('store')}` })),
  sqlite: (title, body) =>
    describe(title, () => {
      const folder = mkdtempSync(join(tmpdir(), 'fencelock-'));
      after(() => rmSync(folder, { recursive: true }));
      body({ name: 'sqlite', url: `sqlite:${join(folder, 'locks.db')}` });
    }),
  redis: onRedis,
};

/** Describes the same for every store the package has. The store's `url` is there when tests run. */
export function onEveryStore(title, body) {
  for (const store of STORES) describers[store](`${title}, ${store}`, body);
}

/** Describes something for a Redis server of its own. */
export function onRedis(title, body) {
  describe(title, () => {
    const store = { name: 'redis' };
    before(async () => {
      store.redis = await Redis.start();
      store.url = store.redis.url;
    });
    after(() => store.redis.stop());
    body(store);
  });
}

/** A lock keeps no process alive that waits for nothing else: tests that wait for a loss need this, where they are described. */
export function stayAwake() {
  let timer;
  before(() => (timer = setInterval(() => {}, 1_000)));
  after(() => clearInterval(timer));
}
