import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connect } from 'fencelock';
import { fresh, onRedis } from './support/stores.js';

const COUNT = 64;

onRedis('what one turn of the event loop asks for', (store) => {
  let client;
  before(async () => (client = await connect(store.url)));
  after(() => client.close());

  /** How often the server read from its clients meanwhile. */
  async function reads(work) {
    const count = async () => Number(/total_reads_processed:(\d+)/.exec(await store.redis.command('INFO', 'stats'))[1]);
    const before = await count();
    const done = await work();
    return { done, reads: (await count()) - before };
  }

  test('leaves together', async () => {
    const locks = Array.from({ length: COUNT }, () => client.lock(fresh()));
    const acquired = await reads(() => Promise.all(locks.map((lock) => lock.acquire())));
    const guards = acquired.done;
    assert.ok(guards.every((guard) => guard.isHeld));
    const released = await reads(() => Promise.all(guards.map((guard) => guard.release())));
    assert.ok(released.done.every((end) => end === 'released'));
    for (const { reads } of [acquired, released]) assert.ok(reads <= COUNT / 6, `${reads} reads for ${COUNT} requests`);
  });

  test('is asked for in that order', async () => {
    const name = fresh();
    const order = [];
    const all = Array.from({ length: COUNT }, async (_, number) => {
      const guard = await client.lock(name, { local: 0 }).acquire();
      order.push(number);
      await guard.release();
    });
    await Promise.all(all);
    assert.deepEqual(order, [...order.keys()]);
  });

  test('leaves nothing behind if it is given up in the same turn', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const given = Array.from({ length: COUNT }, () => client.lock(fresh()).acquire({ signal }));
    controller.abort();
    const ends = await Promise.allSettled(given);
    assert.ok(ends.every(({ reason }) => reason?.name === 'AbortError'));
    const end = performance.now() + 20_000;
    const left = () => Object.values(client.stats()).some((count) => count > 0);
    while (left() && performance.now() < end) await new Promise(setImmediate);
    assert.ok(!left(), `left: ${JSON.stringify(client.stats())}`);
    assert.deepEqual(await store.redis.leftovers(), []);
  });
});
