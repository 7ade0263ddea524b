import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { after, afterEach, before, describe, test } from 'node:test';
import { connect, LockLostError } from 'fencelock';
import { run } from './support/program.js';
import { fresh } from './support/stores.js';

// The native part: what panics there arrives as an exception, which is thrown here in its place.
const require = createRequire(import.meta.url);
const [part] = Object.keys(require('fencelock/package.json').optionalDependencies);
const file = require.resolve(part);
const native = require(file);
const { Door } = native;
const sound = { ...Object.getOwnPropertyDescriptors(Door.prototype) };

/** From now on this of the native part does nothing and throws, as when it panics. */
function panics(name) {
  const value = () => {
    throw new Error('out of paper');
  };
  Object.defineProperty(Door.prototype, name, { ...sound[name], value });
}

const mend = () => Object.defineProperties(Door.prototype, sound);

const internal = { name: 'FencelockError', code: 'internal', message: /a defect of fencelock.*out of paper/ };

describe('a panic of the native part', () => {
  const url = `memory:${fresh('panics')}`;
  let client;
  let other;
  before(async () => ([client, other] = [await connect(url), await connect(url)]));
  afterEach(mend);
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
    mend();
    assert.ok(!guard.signal.aborted);
    panics('check');
    assert.equal(await guard.release(), 'released');
  });

  for (const where of ['submit', 'hold', 'setOff', 'drain']) {
    test(`in ${where} rejects, and leaves nothing behind`, async () => {
      const name = fresh();
      panics(where);
      await assert.rejects(client.lock(name).acquire(), internal);
      mend();
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

  test('when the process is let go keeps nothing from who waited', async () => {
    const waiting = client.lock(fresh()).acquire();
    panics('hold');
    const guard = await waiting;
    mend();
    assert.equal(await guard.release(), 'released');
  });

  test('when a client is connected rejects', async () => {
    panics('connect');
    await assert.rejects(connect(url), internal);
  });

  test('in what is answered at once is thrown', async () => {
    for (const where of ['about', 'openScope']) panics(where);
    for (const ask of [() => client.stats(), () => client.options, () => client.guarantees(), () => client.scope()]) {
      assert.throws(ask, internal);
    }
  });

  test('of whoever watches for a loss counts as one', async () => {
    const [early, late] = [await client.lock(fresh()).acquire(), await client.lock(fresh()).acquire()];
    panics('lost');
    assert.ok(early.signal.aborted, 'nobody would be told of a loss');
    assert.deepEqual([early.signal.reason.name, early.signal.reason.code], ['FencelockError', 'internal']);
    mend();
    assert.ok(!late.signal.aborted);
    panics('drain');
    await assert.rejects(client.lock(fresh()).acquire(), internal);
    assert.equal(late.signal.reason.code, 'internal');
    mend();
    for (const guard of [early, late]) assert.equal(await guard.release(), 'released');
  });

  test('while an acquire is given up leaves its abort as it was', async () => {
    const name = fresh();
    const guard = await other.lock(name).acquire();
    const controller = new AbortController();
    const waiting = client.lock(name).acquire({ signal: controller.signal });
    panics('forget');
    controller.abort();
    await assert.rejects(waiting, { name: 'AbortError' });
    mend();
    await guard.release();
  });
});

describe('a panic at the end', () => {
  /** The native part, within a script. */
  const NATIVE = `
    import { createRequire } from 'node:module';
    const require = createRequire(${JSON.stringify(import.meta.url)});
    const { Door } = require(${JSON.stringify(file)});`;

  test('of what was forgotten is thrown at nobody', async () => {
    const script = `${NATIVE}
      const panicked = [];
      process.on('uncaughtException', (error) => panicked.push(error.message));
      for (const name of ['dropGuard', 'closeScope', 'dropClient']) {
        Door.prototype[name] = () => {
          panicked.push(name);
          throw new Error('out of paper');
        };
      }
      const client = await connect(url);
      await (async () => {
        await client.lock('forgotten').acquire();
        client.scope();
        await connect(url);
      })();
      for (let round = 0; round < 200 && panicked.length < 3; round++) {
        globalThis.gc();
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      console.log(panicked.sort().join());`;
    const program = await run(script, { flags: ['--expose-gc', '--no-warnings'] });
    assert.deepEqual([program.out, program.code], ['closeScope,dropClient,dropGuard\n', 0], program.err);
  });

  test('of a process does not change how it ends', async () => {
    const script = `${NATIVE}
      const client = await connect(url);
      await client.lock('held').acquire();
      Door.prototype.leave = () => {
        throw new Error('out of paper');
      };
      process.exitCode = 3;`;
    const { err, code, signal } = await run(script);
    assert.deepEqual([code, signal], [3, null]);
    assert.doesNotMatch(err, /FencelockError/);
  });
});
