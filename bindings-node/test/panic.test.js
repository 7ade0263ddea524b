import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { connect, LockLostError } from 'fencelock';
import { fresh } from './support/stores.js';

// The native part: what panics there arrives as an exception. It panics on purpose when tests ask it to.
const require = createRequire(import.meta.url);
const folder = dirname(require.resolve('fencelock'));
const { Door } = require(join(folder, readdirSync(folder).find((name) => name.endsWith('.node'))));
const sound = { ...Object.getOwnPropertyDescriptors(Door.prototype) };

/** From now on this of the native part panics. */
function panics(name) {
  Object.defineProperty(Door.prototype, name, { ...sound[name], value: Door.panic });
}

const internal = { code: 'internal', message: /a defect of fencelock.*out of paper/ };

describe('a panic of the native part', () => {
  const url = `memory:${fresh('panics')}`;
  let client;
  let other;
  before(async () => ([client, other] = [await connect(url), await connect(url)]));
  afterEach(() => Object.defineProperties(Door.prototype, sound));
  after(() => Promise.all([client.close(), other.close()]));

  /** Whether somebody else can have the lock soon. */
  const isFree = async (name) => (await other.lock(name).acquire({ wait: 5000 })).release();

  test('reads as not held', async () => {
    const name = fresh();
    const guard = await client.lock(name).acquire();
    panics('isHeld');
    panics('remaining');
    panics('check');
    assert.equal(guard.isHeld, false);
    assert.equal(guard.remaining, 0);
    assert.throws(() => guard.check(), internal);
    Object.defineProperties(Door.prototype, sound);
    assert.equal(await guard.release(), 'released');
  });

  for (const where of ['submit', 'setOff', 'drain']) {
    test(`in ${where} rejects, and leaves nothing behind`, async () => {
      const name = fresh();
      panics(where);
      await assert.rejects(client.lock(name).acquire(), internal);
      Object.defineProperties(Door.prototype, sound);
      assert.equal(await isFree(name), 'released');
      const guard = await client.lock(name).acquire();
      assert.ok(guard.isHeld, 'the client goes on');
      assert.equal(await guard.release(), 'released');
    });
  }

  test('when a guard is given back is told', async () => {
    const guard = await client.lock(fresh()).acquire();
    panics('release');
    const error = await guard.release().then(assert.fail, (error) => error);
    assert.ok(!(error instanceof LockLostError));
    assert.equal(error.code, 'internal');
  });

  test('is told to who listens', () => {
    panics('listen');
    assert.throws(() => client.on('lost', () => {}), internal);
  });
});
