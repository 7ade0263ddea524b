// What an operation costs is how often it crosses between JavaScript and the core: that is counted, since times are the machine's.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { after, afterEach, before, describe, test } from 'node:test';
import { connect } from 'fencelock';
import { fresh } from './support/stores.js';

const require = createRequire(import.meta.url);
const [part] = Object.keys(require('fencelock/package.json').optionalDependencies);
const { Door } = require(part);
const sound = { ...Object.getOwnPropertyDescriptors(Door.prototype) };

/** Counts, from now on, what is called of the native part. */
function counting() {
  const counts = {};
  for (const [name, { value }] of Object.entries(sound).filter(([name]) => name !== 'constructor')) {
    const counted = function (...words) {
      counts[name] = (counts[name] ?? 0) + 1;
      return value.apply(this, words);
    };
    Object.defineProperty(Door.prototype, name, { ...sound[name], value: counted });
  }
  return counts;
}

describe('a crossing', () => {
  let client;
  before(async () => (client = await connect(`memory:${fresh('crossings')}`)));
  afterEach(() => Object.defineProperties(Door.prototype, sound));
  after(() => client.close());

  test('there and one back is what an acquire and a release cost', async () => {
    const lock = client.lock(fresh());
    await (await lock.acquire()).release();
    const counts = counting();
    await (await lock.acquire()).release();
    assert.deepEqual(counts, { submit: 1, check: 1, release: 1, setOff: 2, drain: 2, hold: 4 });
  });

  test('is shared by what one turn asks for', async () => {
    const locks = Array.from({ length: 64 }, () => client.lock(fresh()));
    const counts = counting();
    const guards = await Promise.all(locks.map((lock) => lock.acquire()));
    const { submit, setOff, hold, drain } = counts;
    assert.deepEqual([submit, setOff, hold], [64, 1, 2]);
    assert.ok(drain <= 16, `${drain} drains`);
    await Promise.all(guards.map((guard) => guard.release()));
  });

  test('is all that a look costs', async () => {
    const guard = await client.lock(fresh()).acquire();
    const counts = counting();
    assert.ok(guard.isHeld && guard.remaining > 0 && guard.token > 0);
    guard.check();
    assert.deepEqual(counts, { isHeld: 1, remaining: 1, check: 1 });
    await guard.release();
  });
});
