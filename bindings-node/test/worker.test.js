import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { connect } from 'fencelock';
import { fresh, LANGUAGE, onEveryStore } from './support/stores.js';

const wasm = LANGUAGE === 'wasm';

/** Starts a worker that runs this over the package. */
function start(script, data) {
  const text = `
    const { parentPort, workerData } = require('node:worker_threads');
    (async () => {
      const { connect } = await import('fencelock');
      ${script}
    })();`;
  const worker = new Worker(text, { eval: true, workerData: data });
  worker.failed = once(worker, 'error').then(([error]) => Promise.reject(error));
  worker.failed.catch(() => {});
  // It may exit in the very moment in which its last message arrives.
  worker.exited = once(worker, 'exit');
  worker.exited.catch(() => {});
  return worker;
}

/** Waits until the lock can be had, for at most a second. */
async function isFree(client, name) {
  const guard = await client.lock(name).acquire({ wait: 1_000 });
  await guard.release();
}

onEveryStore('a worker', (store) => {
  test('locks and ends by itself', async (t) => {
    const client = await connect(store.url);
    t.after(() => client.close());
    const name = fresh();
    let last = 0;
    for (let round = 0; round < 3; round++) {
      const worker = start(
        `const client = await connect(workerData.url);
         const guard = await client.lock(workerData.name).acquire();
         parentPort.postMessage(guard.token);
         await guard.release();`,
        { url: store.url, name },
      );
      const [token] = await Promise.race([once(worker, 'message'), worker.failed]);
      assert.ok(token > last);
      last = token;
      const [code] = await worker.exited;
      assert.equal(code, 0);
    }
    await isFree(client, name);
  });

  const abrupt = wasm && 'nothing is sent any more by what is terminated';
  test('that is terminated gives back what it holds and waits for', { skip: abrupt }, async (t) => {
    const client = await connect(store.url, { ttl: 20_000 });
    t.after(() => client.close());
    const [held, wanted] = [fresh(), fresh()];
    const mine = await client.lock(wanted).acquire();
    const worker = start(
      `const client = await connect(workerData.url, { ttl: 20_000 });
       await client.lock(workerData.held).acquire();
       client.on('lost', () => {});
       for (let number = 0; number < 20; number++) client.lock(workerData.wanted).acquire();
       parentPort.postMessage('waits');
       setInterval(() => {}, 1000);`,
      { url: store.url, held, wanted },
    );
    await Promise.race([once(worker, 'message'), worker.failed]);
    while ((await client.lock(wanted).inspect()).waiters.length === 0) await sleep(1);
    await worker.terminate();
    await isFree(client, held);
    assert.equal(await mine.release(), 'released');
    const state = await client.lock(wanted).inspect();
    assert.deepEqual([state.holders, state.waiters], [[], []]);
  });

  test('that ends while it holds releases', async (t) => {
    const client = await connect(store.url, { ttl: 20_000 });
    t.after(() => client.close());
    const name = fresh();
    const worker = start(
      `const client = await connect(workerData.url, { ttl: 20_000 });
       globalThis.guard = await client.lock(workerData.name).acquire();`,
      { url: store.url, name },
    );
    const [code] = await Promise.race([worker.exited, worker.failed]);
    assert.equal(code, 0);
    await isFree(client, name);
  });

  const alone = wasm && store.name === 'memory' && 'each module has a memory of its own';
  test('beside others and the main thread counts right', { skip: alone }, async (t) => {
    const client = await connect(store.url);
    t.after(() => client.close());
    const name = fresh();
    const count = new Int32Array(new SharedArrayBuffer(4));
    const script = `
      const client = await connect(workerData.url);
      for (let number = 0; number < 25; number++) {
        await client.lock(workerData.name).using(async () => {
          const seen = workerData.count[0];
          await new Promise((resolve) => setImmediate(resolve));
          workerData.count[0] = seen + 1;
        });
      }`;
    const workers = Array.from({ length: 3 }, () => start(script, { url: store.url, name, count }));
    await Promise.all(workers.map((worker) => Promise.race([worker.exited, worker.failed])));
    assert.equal(count[0], 75);
  });
});
