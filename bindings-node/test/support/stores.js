// The stores every test of locks is run on.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe } from 'node:test';
import { Redis } from './redis.js';

let names = 0;

/** A name nobody else in this process uses. */
export function fresh(what = 'lock') {
  return `${what}:${++names}`;
}

/** Describes the same for memory, SQLite and Redis. The store's `url` is there when tests run. */
export function onEveryStore(title, body) {
  describe(`${title}, memory`, () => body({ name: 'memory', url: `memory:${fresh('store')}` }));
  describe(`${title}, sqlite`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'fencelock-'));
    after(() => rmSync(folder, { recursive: true }));
    body({ name: 'sqlite', url: `sqlite:${join(folder, 'locks.db')}` });
  });
  onRedis(`${title}, redis`, body);
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
