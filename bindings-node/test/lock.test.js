import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { connect, LockTimeoutError } from 'fencelock';
import { fresh, onEveryStore, LANGUAGE } from './support/stores.js';

onEveryStore('locks', (store) => {
  let client;
  let other;
  before(async () => {
    client = await connect(store.url, { ttl: 60_000 });
    other = await connect(store.url, { ttl: 60_000 });
  });
  after(async () => {
    await client.close();
    await other.close();
  });

  test('one at a time, with tokens that rise', async () => {
    const name = fresh();
    const first = await client.lock(name).acquire();
    assert.equal(first.name, name);
    assert.ok(Number.isSafeInteger(first.token) && first.token > 0);
    assert.equal(inspect(first), `Guard { name: '${name}', token: ${first.token} }`);
    assert.ok(first.isHeld && first.remaining > 40_000 && first.remaining <= 60_000);
    assert.equal(await other.lock(name).tryAcquire(), null);
    const waiting = other.lock(name).acquire({ wait: 20_000 });
    assert.equal(await first.release(), 'released');
    assert.ok(!first.isHeld && first.remaining === 0);
    const second = await waiting;
    assert.ok(second.token > first.token);
    await second.release();
  });

  test('a wait ends with a timeout', async () => {
    const name = fresh();
    const guard = await client.lock(name).acquire();
    const error = await other.lock(name, { wait: 50 }).acquire().catch((error) => error);
    assert.ok(error instanceof LockTimeoutError && error instanceof Error);
    assert.deepEqual([error.name, error.code, error.retryable, error.fields.name], ['LockTimeoutError', 'timeout', true, name]);
    assert.match(error.stack, /lock\.test\.js/);
    await guard.release();
  });

  test('await using gives back', async () => {
    const name = fresh();
    const guard = await client.lock(name).acquire();
    await guard[Symbol.asyncDispose]();
    await guard[Symbol.asyncDispose]();
    assert.ok(!guard.isHeld);
    await (await other.lock(name).tryAcquire()).release();
  });

  test('a lease can be made longer', async () => {
    const guard = await client.lock(fresh(), { ttl: 4_000, renew: false }).acquire();
    await guard.extend(10_000);
    assert.ok(guard.remaining > 5_000);
    await guard.release();
    await assert.rejects(guard.extend(1_000), { code: 'not_held' });
    await assert.rejects(guard.release(), { code: 'not_held' });
  });

  test('inspect shows who holds and who waits', async () => {
    const name = fresh();
    const guard = await client.lock(name, { info: { roomNumber: '12' } }).acquire();
    const waiting = other.lock(name).acquire();
    let state;
    do state = await client.lock(name).inspect();
    while (state.waiters.length === 0);
    const [holder] = state.holders;
    assert.deepEqual([state.kind, holder.mode, holder.token], ['mutex', 'exclusive', guard.token]);
    assert.deepEqual([holder.info.info, holder.info.language], [{ roomNumber: '12' }, LANGUAGE]);
    assert.equal(holder.info.pid, process.pid);
    assert.ok(holder.left > 0 && state.waiters[0].waitingFor >= 0);
    await guard.release();
    await (await waiting).release();
  });

  test('names are listed', async () => {
    const prefix = fresh('names');
    const guards = [await client.lock(`${prefix}/b`).acquire(), await client.lock(`${prefix}/a`).acquire()];
    assert.deepEqual(await other.names(prefix), [`${prefix}/a`, `${prefix}/b`]);
    for (const guard of guards) await guard.release();
  });

  test('readers beside each other, a writer alone', async () => {
    const name = fresh();
    const readers = [await client.readLock(name).acquire(), await other.readLock(name).acquire()];
    assert.equal(await client.writeLock(name).tryAcquire(), null);
    for (const one of readers) await one.release();
    const writer = await client.writeLock(name).acquire();
    assert.ok(writer.token > readers[1].token);
    assert.equal(await other.readLock(name).tryAcquire(), null);
    await writer.release();
  });

  test('so many permits', async () => {
    const name = fresh();
    const first = await client.semaphore(name, 2).acquire();
    const second = await other.semaphore(name, 2).acquire();
    assert.equal(await client.semaphore(name, 2).tryAcquire(), null);
    await first.release();
    await second.release();
  });

  test('several as one', async () => {
    const [a, b] = [fresh(), fresh()];
    const guard = await client.all([b, a]).acquire();
    assert.deepEqual([...guard.tokens.keys()].sort(), [a, b].sort());
    assert.equal(guard.token, guard.tokens.get(guard.name));
    assert.equal(await other.lock(b).tryAcquire(), null);
    assert.equal(await other.all([a]).tryAcquire(), null);
    await guard.release();
    await (await other.lock(b).tryAcquire()).release();
  });

  test('a scope enters again', async () => {
    const name = fresh();
    const lock = client.reentrant(name);
    const outer = await lock.acquire();
    const inner = await lock.acquire();
    assert.equal(inner.token, outer.token);
    await outer.release();
    assert.equal(await other.lock(name).tryAcquire(), null);
    await inner.release();
    await (await other.lock(name).tryAcquire()).release();
    const scope = client.scope();
    const guards = [await scope.lock(name).acquire(), await scope.lock(name).acquire()];
    assert.equal(await client.scope().lock(name).tryAcquire(), null);
    for (const guard of guards) await guard.release();
  });

  test('a hundred increments are a hundred', async () => {
    const name = fresh();
    let count = 0;
    const add = async (by) => {
      await by.lock(name).using(async () => {
        const seen = count;
        await sleep(0);
        count = seen + 1;
      });
    };
    await Promise.all(Array.from({ length: 100 }, (_, number) => add(number % 2 ? client : other)));
    assert.equal(count, 100);
  });

  test('a client at rest carries nothing', async () => {
    const name = fresh();
    await client.lock(name).using((guard) => guard.token);
    let load;
    do load = client.stats();
    while (Object.values(load).some((count) => count > 0) && (await sleep(1, true)));
    assert.deepEqual(load, { running: 0, done: 0, guards: 0, entries: 0, locks: 0 });
  });

  test('what the store keeps is told', () => {
    const { store: kind, fence, guarantees, foreignHolders } = client.guarantees();
    assert.equal(kind, store.name);
    assert.equal(typeof foreignHolders, 'boolean');
    assert.ok(fence.length > 0 && guarantees.length > 0 && guarantees[0].when && guarantees[0].then);
    const { ttl, maxHold, fair, info, connectTimeout } = client.options;
    assert.deepEqual([ttl, maxHold, fair, info, connectTimeout], [60_000, null, null, '', 5_000]);
  });
});
