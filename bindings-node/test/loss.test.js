import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, LockLostError } from 'fencelock';
import { fresh, onEveryStore, onRedis, stayAwake } from './support/stores.js';

const SHORT = { ttl: 1_000, renew: false };
const LONGER = 1_100;

/** A client that is closed when the test has ended. */
async function open(t, { url }, options) {
  const client = await connect(url, options);
  t.after(() => client.close());
  return client;
}

onEveryStore('a loss', (store) => {
  stayAwake();

  test('is told by the signal, with the error as its reason', async (t) => {
    const client = await open(t, store);
    const guard = await client.lock(fresh(), SHORT).acquire();
    assert.equal(guard.signal, guard.signal);
    assert.ok(!guard.signal.aborted);
    await once(guard.signal, 'abort');
    const { reason } = guard.signal;
    assert.ok(reason instanceof LockLostError);
    assert.deepEqual([reason.code, reason.retryable, reason.fields.token], ['lost', false, String(guard.token)]);
    assert.equal(await guard.release(), 'already_lost');
  });

  test('is told to who never asked for the signal', async (t) => {
    const client = await open(t, store);
    const guard = await client.lock(fresh(), SHORT).acquire();
    guard.check();
    await sleep(LONGER);
    assert.ok(!guard.isHeld);
    assert.throws(() => guard.check(), LockLostError);
    assert.ok(guard.signal.aborted && guard.signal.reason instanceof LockLostError);
    assert.equal(await guard.release(), 'already_lost');
    assert.throws(() => guard.check(), { code: 'not_held' });
  });

  test('is not told of a guard that was released', async (t) => {
    const client = await open(t, store);
    const guard = await client.lock(fresh(), SHORT).acquire();
    const { signal } = guard;
    assert.equal(await guard.release(), 'released');
    await sleep(LONGER);
    assert.ok(!signal.aborted);
    const silent = await client.lock(fresh(), SHORT).acquire();
    await silent.release();
    assert.ok(!silent.signal.aborted);
  });

  test('comes with the close of the client', async () => {
    const client = await connect(store.url);
    const guard = await client.lock(fresh()).acquire();
    const lost = once(guard.signal, 'abort');
    await client.close();
    await lost;
    assert.ok(guard.signal.reason instanceof LockLostError);
    await assert.rejects(client.lock(fresh()).acquire(), { code: 'closed' });
  });

  test('is an event of the client, as all that happens', async (t) => {
    const client = await open(t, store);
    const name = fresh();
    const seen = [];
    const told = new Promise((resolve) => client.on('lost', resolve));
    const listener = (event) => seen.push([event.kind, event.name]);
    client.on('granted', listener).on('released', listener);
    await (await client.lock(name).acquire()).release();
    const guard = await client.lock(name, SHORT).acquire();
    const event = await told;
    assert.deepEqual([event.kind, event.name, event.token], ['lost', name, guard.token]);
    assert.deepEqual(seen, [['granted', name], ['released', name], ['granted', name]]);
    client.off('granted', listener).off('released', listener);
    await guard.release();
  });

  test('is a warning of the process, unasked', async (t) => {
    const client = await open(t, store);
    const name = fresh();
    const warned = new Promise((resolve) => {
      process.on('warning', ({ code, message }) => code === 'FENCELOCK_LOST' && message.includes(name) && resolve(message));
    });
    const guard = await client.lock(name, SHORT).acquire();
    const message = await warned;
    assert.match(message, new RegExp(`^lost ${name}: token ${guard.token}, held for .* s, its lease has ended \\(\`renew=false\`\\)$`));
    await guard.release();
  });

  test('that nobody was told is a warning when the guard is disposed of', async (t) => {
    const client = await open(t, store);
    // Guards of other tests may be collected meanwhile, which is a warning of its own.
    const warned = new Promise((resolve) => {
      process.on('warning', ({ code, message }) => code === 'FENCELOCK_LOST' && message.includes('await using') && resolve());
    });
    const guard = await client.lock(fresh(), SHORT).acquire();
    await sleep(LONGER);
    await guard[Symbol.asyncDispose]();
    await warned;
  });
});

onRedis('a theft', (store) => {
  stayAwake();

  test('is found by the renewal', async (t) => {
    const client = await open(t, store, { ttl: 600 });
    const name = fresh();
    const guard = await client.lock(name).acquire();
    const key = `fencelock:{${name}}:held:${name}`;
    await store.redis.command('SET', key, 'thief', 'PX', 60_000);
    await once(guard.signal, 'abort');
    assert.equal(await guard.release(), 'already_lost');
    assert.equal(await store.redis.command('GET', key), 'thief');
    await store.redis.command('DEL', key);
  });
});
