import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'fencelock';
import { chance, share } from './support/chance.js';
import { fresh, onEveryStore } from './support/stores.js';

const SEED = 20_211;

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

  /** Nothing is carried, nobody holds, nobody waits. */
  async function atRest(names) {
    const left = async () => {
      const loads = [client, other].flatMap((one) => Object.values(one.load()));
      const states = await Promise.all(names.map((name) => client.lock(name).inspect()));
      return [...loads, ...states.flatMap(({ holders, waiters }) => [holders.length, waiters.length])];
    };
    const end = performance.now() + 5_000;
    let seen;
    do seen = await left();
    while (seen.some((count) => count > 0) && performance.now() < end && (await sleep(5, true)));
    assert.ok(seen.every((count) => count === 0), `left: ${seen}`);
    if (store.redis) assert.deepEqual(await store.redis.leftovers(), []);
  }

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
    await atRest([name]);
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
    await atRest([name]);
  });

  test('a grant that crosses is given back', async () => {
    const name = fresh();
    for (let round = 0; round < 20; round++) {
      const controller = new AbortController();
      const pending = other.lock(name).acquire({ signal: controller.signal });
      // The grant comes while the event loop is busy; the abort is seen first.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
      controller.abort();
      await assert.rejects(pending, { name: 'AbortError' });
    }
    await atRest([name]);
  });

  test('who listens to one loss may give another acquire up', async () => {
    const [lost, name] = [fresh(), fresh()];
    const controller = new AbortController();
    const guard = await client.lock(lost, { ttl: 50, renew: false }).acquire();
    guard.signal.addEventListener('abort', () => controller.abort());
    await (await other.lock(name).acquire()).release();
    await sleep(30);
    const pending = other.lock(name).acquire({ signal: controller.signal });
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60);
    const end = await pending.catch((error) => error);
    await (end instanceof Error ? undefined : end.release());
    await guard.release();
    await atRest([lost, name]);
  });

  const cancels = share(5_000);
  test(`${cancels} cancels at random leave nothing behind (seed ${SEED})`, { timeout: 240_000 }, async () => {
    const draw = chance(SEED);
    const names = Array.from({ length: 8 }, () => fresh());
    let [cancelled, granted, swallowed] = [0, 0, 0];
    async function once() {
      const name = names[Math.floor(draw() * names.length)];
      const by = draw() < 0.5 ? client : other;
      const controller = new AbortController();
      const { signal } = controller;
      const kind = draw();
      const lock = kind < 0.8 ? by.lock(name) : by.all([name, names[0]].filter((one, at, all) => all.indexOf(one) === at));
      const delay = draw() * 6;
      if (delay < 1) queueMicrotask(() => controller.abort());
      else if (delay < 2) setImmediate(() => controller.abort());
      else setTimeout(() => controller.abort(), delay - 2);
      let overdue = false;
      signal.addEventListener('abort', () => setImmediate(() => (overdue = true)));
      try {
        const guard = await (draw() < 0.1 ? lock.tryAcquire({ signal }) : lock.acquire({ signal }));
        granted++;
        // A turn after the abort it would have had to reject.
        swallowed += overdue;
        if (draw() < 0.3) await sleep(draw() * 2);
        await guard?.release();
      } catch (error) {
        assert.equal(error.name, 'AbortError');
        cancelled++;
      }
    }
    const worker = async () => {
      // It ends also where a signal does nothing.
      while (cancelled < cancels && granted < 10 * cancels) await once();
    };
    await Promise.all(Array.from({ length: 16 }, worker));
    assert.equal(swallowed, 0);
    assert.ok(cancelled >= cancels && granted > 0, `${cancelled} cancelled, ${granted} granted`);
    await atRest(names);
  });
});
