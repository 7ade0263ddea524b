import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from 'fencelock';
import { ended, losing, run, SLACK } from './support/program.js';
import { fresh, onEveryStore, onRedis } from './support/stores.js';

onEveryStore('a process', (store) => {
  test('that locks and releases ends by itself', async () => {
    const script = `
      const client = await connect(url);
      const guard = await client.lock(${JSON.stringify(fresh())}).acquire();
      client.on('lost', () => {});
      guard.signal;
      await guard.release();
      console.log('end');`;
    ended(await run(script, store));
  });

  test('is kept alive by an acquire that is awaited', async () => {
    const script = `
      const client = await connect(url);
      const guard = await client.lock('held').acquire();
      const waiting = client.lock('held').acquire({ wait: 700 }).catch((error) => console.log(error.code));
      await waiting;
      await guard.release();
      console.log('end');`;
    const program = await run(script, store);
    ended(program);
    assert.equal(program.out, 'timeout\nend\n');
  });

  test('that ends in the middle of a wait leaves nothing', async () => {
    const name = fresh();
    const script = `
      const client = await connect(url);
      await client.lock(${JSON.stringify(name)}).acquire();
      client.lock(${JSON.stringify(name)}).acquire();
      setTimeout(() => { console.log('end'); process.exit(0); }, 50);`;
    ended(await run(script, store), SLACK);
    await isFree(name);
  });

  for (const [how, end] of [
    ['has nothing more to do', ''],
    ['exits', 'process.exit(0);'],
    // U31
    ['exits on SIGTERM', `process.once('SIGTERM', () => process.exit(0)); process.kill(process.pid, 'SIGTERM'); setTimeout(() => {}, 20_000);`],
    ['does not wait for its release', 'guard.release(); process.exit(0);'],
  ]) {
    test(`that holds a lock and ${how} releases it`, async () => {
      const name = fresh();
      const script = `
        const client = await connect(url);
        const guard = await client.lock(${JSON.stringify(name)}).acquire();
        guard.signal.addEventListener('abort', () => {});
        console.log('end');
        ${end}`;
      ended(await run(script, store), SLACK);
      await isFree(name);
    });
  }

  test('that dies of its own error releases what it holds', async () => {
    const name = fresh();
    const script = `
      const client = await connect(url);
      await client.lock(${JSON.stringify(name)}).acquire();
      throw new Error('its own');`;
    const program = await run(script, store);
    assert.equal(program.code, 1);
    assert.match(program.err, /its own/);
    await isFree(name);
  });

  test('does not die of a lost lock', async () => {
    const program = await run(losing(fresh()), store);
    assert.deepEqual([program.out, program.code], ['false\n', 0]);
    assert.match(program.err, /FENCELOCK_LOST/);
  });

  /** Another process' lock is free now. In memory nobody else can tell. */
  async function isFree(name) {
    if (store.name === 'memory') return;
    const client = await connect(store.url);
    const guard = await client.lock(name).tryAcquire();
    assert.ok(guard, 'the lock is still held');
    await guard.release();
    await client.close();
  }
});

onRedis('a store that is gone', (store) => {
  test('does not hold an exit up', async () => {
    const script = `
      const client = await connect(url);
      await client.lock('held').acquire();
      process.once('SIGUSR2', () => { console.log('end'); process.exit(0); });
      setInterval(() => {}, 1000);
      console.log('held');`;
    const heard = (text, child) => {
      if (!text.includes('held')) return;
      store.redis.signal('SIGSTOP');
      child.kill('SIGUSR2');
    };
    const program = await run(script, { ...store, heard });
    store.redis.signal('SIGCONT');
    ended(program, 1_000 + SLACK);
  });
});
