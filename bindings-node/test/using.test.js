import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, LockLostError } from 'fencelock';
import { block } from './support/block.js';
import { fresh, stayAwake } from './support/stores.js';

/** Ends by itself, so that it is lost, but not before a body begins on a busy machine. */
const SHORT = { ttl: 1_000, renew: false };

/** Keeps the thread until a short lease has ended. */
const outlast = () => block(1_100);

describe('using', () => {
  stayAwake();
  let client;
  before(async () => (client = await connect('memory:using')));
  after(() => client.close());

  const isFree = async (name) => (await client.lock(name).tryAcquire()).release();

  test('answers what the body answers, and frees the lock', async () => {
    const name = fresh();
    const value = await client.lock(name).using((guard, signal) => {
      assert.ok(guard.isHeld && !signal.aborted);
      return guard.token;
    });
    assert.ok(value > 0);
    await isFree(name);
  });

  test('the error of the body is told as it is', async () => {
    const name = fresh();
    const error = new Error('mine');
    await assert.rejects(client.lock(name).using(() => { throw error; }), (thrown) => thrown === error);
    await assert.rejects(client.lock(name).using(async () => { throw error; }), (thrown) => thrown === error);
    await isFree(name);
  });

  test('a loss aborts the signal and rejects', async () => {
    let reason;
    const body = async (guard, signal) => {
      signal.addEventListener('abort', () => (reason = signal.reason));
      await sleep(10_000, undefined, { signal });
    };
    const error = await client.lock(fresh()).using(body, SHORT).catch((error) => error);
    assert.ok(error instanceof LockLostError);
    assert.equal(error, reason);
    assert.match(error.message, /no longer held/);
  });

  test('a body that looks at nothing is not waited for', async () => {
    const error = await client.lock(fresh()).using(() => new Promise(() => {}), SHORT).catch((error) => error);
    assert.ok(error instanceof LockLostError);
  });

  test('what the body itself has to say to a loss is not hidden', async () => {
    const body = async (guard, signal) => {
      await sleep(10_000, undefined, { signal }).catch(() => {});
      throw new RangeError('rolled back');
    };
    await assert.rejects(client.lock(fresh()).using(body, SHORT), RangeError);
  });

  test('what a body fails with after the call has rejected is a warning', async () => {
    const warned = new Promise((resolve) => {
      process.on('warning', (warning) => warning.code === 'FENCELOCK_LATE' && resolve(warning));
    });
    let fail;
    const body = () => new Promise((_, reject) => (fail = reject));
    await assert.rejects(client.lock(fresh()).using(body, SHORT), LockLostError);
    fail(new RangeError('too late'));
    const warning = await warned;
    assert.equal(warning.name, 'FencelockWarning');
    assert.match(warning.detail, /too late/);
  });

  test('a loss found at the end rejects', async () => {
    const name = fresh();
    const error = await client.lock(name).using(outlast, SHORT).catch((error) => error);
    assert.ok(error instanceof LockLostError);
    assert.equal(error.fields.name, name);
  });

  test('under a lock that was lost before the body could begin, none begins', async () => {
    const [name, long] = [fresh(), fresh()];
    let begun = false;
    // Both are granted in one turn, and the body of the first keeps the thread until the other's lease has ended.
    const busy = client.lock(long).using(outlast);
    const late = client.lock(name).using(() => (begun = true), SHORT);
    await assert.rejects(late, LockLostError);
    await busy;
    assert.ok(!begun);
    await isFree(name);
  });

  test('a body that fails in a lost lock fails with its own error', async () => {
    const body = () => {
      outlast();
      throw new RangeError('mine');
    };
    const error = await client.lock(fresh()).using(body, SHORT).catch((error) => error);
    assert.ok(error instanceof RangeError && error.cause instanceof LockLostError, String(error));
  });

  test('the caller may give a body up', async () => {
    const name = fresh();
    const controller = new AbortController();
    const body = async (guard, signal) => {
      setImmediate(() => controller.abort());
      await sleep(10_000, undefined, { signal });
    };
    await assert.rejects(client.lock(name).using(body, { signal: controller.signal }), { name: 'AbortError' });
    await isFree(name);
  });

  test('a body may release its guard', async () => {
    assert.equal(await client.lock(fresh()).using((guard) => guard.release()), 'released');
  });
});
