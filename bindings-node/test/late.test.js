import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, LockLostError } from 'fencelock';
import { block } from './support/block.js';
import { fresh, onEveryStore, stayAwake } from './support/stores.js';

/** A lease that ends while the event loop stands still. */
const SHORT = { ttl: 1_000, renew: false };

/** Keeps the event loop from hearing of what was granted, until its lease has ended. */
async function standStill() {
  // What this turn has asked for is set off first.
  await null;
  await null;
  block(1_500);
}

onEveryStore('a grant that is heard of too late', (store) => {
  stayAwake();

  test('is no guard, and nothing is left of it', async (t) => {
    const client = await connect(store.url);
    t.after(() => client.close());
    const [name, other] = [fresh(), fresh()];
    const asked = [
      client.lock(name, SHORT).acquire(),
      client.lock(other, SHORT).tryAcquire(),
      client.all([fresh(), fresh()], SHORT).acquire(),
      client.lock(fresh(), { maxHold: 1_000 }).acquire(),
      client.election(fresh(), { ttl: 1_000 }).campaign(),
      client.job(fresh(), 60_000, { atMostFor: 1_000 }).start(),
    ];
    const ended = Promise.allSettled(asked);
    await standStill();
    const [acquired, tried, all, most, led, run] = await ended;
    for (const { reason } of [acquired, tried, all, most, run]) assert.ok(reason instanceof LockLostError, reason);
    // An office has no fixed lease: it was renewed.
    assert.ok(await led.value.release());
    for (const free of [name, other]) await (await client.lock(free).acquire({ wait: 5000 })).release();
  });
});
