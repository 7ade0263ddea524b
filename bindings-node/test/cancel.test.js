import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'fencelock';
import { block } from './support/block.js';
import { atRest } from './support/rest.js';
import { fresh, onEveryStore } from './support/stores.js';

onEveryStore('cancellation', (store) => {
  let client;
  let other;
  const rejections = [];
  const note = (reason) => rejections.push(reason);
  before(async () => {
    process.on('unhandledRejection', note);
    client = await connect(store.url, { ttl: 20_000 });
    other = await connect(store.url, { ttl: 20_000 });
  });
  after(async () => {
    await client.close();
    await other.close();
    process.off('unhandledRejection', note);
    assert.deepEqual(rejections, []);
  });

  test('rejects with the reason of the signal', async () => {
    const name = fresh();
    const guard = await client.lock(name).acquire();
    const cause = new Error('changed my mind');
    const controller = new AbortController();
    const pending = other.lock(name).acquire({ signal: controller.signal });
    setTimeout(() => controller.abort(cause), 30);
    await assert.rejects(pending, (error) => error === cause);
    const plain = new AbortController();
    setTimeout(() => plain.abort(), 30);
    await assert.rejects(other.lock(name).acquire({ signal: plain.signal }), { name: 'AbortError' });
    await assert.rejects(other.lock(name).acquire({ signal: AbortSignal.timeout(30) }), { name: 'TimeoutError' });
    await assert.rejects(other.lock(name).acquire({ signal: AbortSignal.abort(cause) }), (error) => error === cause);
    await guard.release();
    await atRest(store, [client, other], [name]);
  });

  test('keeps one listener at a signal, and takes it away', async () => {
    const name = fresh();
    const warnings = [];
    const warn = (warning) => warnings.push(warning);
    process.on('warning', warn);
    const controller = new AbortController();
    const { signal } = controller;
    const guard = await client.lock(name).acquire({ signal });
    assert.equal(getEventListeners(signal, 'abort').length, 0);
    const pending = Array.from({ length: 50 }, () => other.lock(name).acquire({ signal }));
    const ends = Promise.allSettled(pending);
    await sleep(20);
    assert.equal(getEventListeners(signal, 'abort').length, 1);
    assert.equal(signal.onabort, null);
    controller.abort();
    assert.ok((await ends).every(({ status, reason }) => status === 'rejected' && reason.name === 'AbortError'));
    assert.equal(getEventListeners(signal, 'abort').length, 0);
    await guard.release();
    await sleep(0);
    process.off('warning', warn);
    assert.deepEqual(warnings, []);
    await atRest(store, [client, other], [name]);
  });

  test('a grant that crosses is given back', async () => {
    const name = fresh();
    for (let round = 0; round < 20; round++) {
      const controller = new AbortController();
      const pending = other.lock(name).acquire({ signal: controller.signal });
      // The grant comes while the event loop is busy; the abort is seen first.
      block(5);
      controller.abort();
      await assert.rejects(pending, { name: 'AbortError' });
    }
    await atRest(store, [client, other], [name]);
  });

  test('an abort after the grant changes nothing', async () => {
    const name = fresh();
    const controller = new AbortController();
    const guard = await other.lock(name).acquire({ signal: controller.signal });
    controller.abort();
    assert.ok(guard.isHeld);
    assert.equal(await client.lock(name).tryAcquire(), null);
    assert.equal(await guard.release(), 'released');
    await atRest(store, [client, other], [name]);
  });

  test('who listens to one loss may give another acquire up', async () => {
    const [lost, name] = [fresh(), fresh()];
    const controller = new AbortController();
    const guard = await client.lock(lost, { ttl: 1_000, renew: false }).acquire();
    guard.signal.addEventListener('abort', () => controller.abort());
    await (await other.lock(name).acquire()).release();
    await sleep(guard.remaining - 200);
    const pending = other.lock(name).acquire({ signal: controller.signal });
    block(300);
    const end = await pending.catch((error) => error);
    await (end instanceof Error ? undefined : end.release());
    await guard.release();
    await atRest(store, [client, other], [lost, name]);
  });
});
