// Servers that nobody refuses for: nothing waits for them longer than it was said, nor does the process.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { serve } from '../rest.js';
import { Hole } from './support/hole.js';
import { ended, run, SLACK } from './support/program.js';
import { onRedis } from './support/stores.js';

/** So long a process waits whose connection nobody refuses, and so long it waits for its clients to close. */
const [UNAWAITED, LAST] = [1_000, 1_000];
/** So long a client waits for what it has to give back when it is closed. */
const CLOSING = 2_000;
/** Reads how long something lasted. */
const TIMED = `const timed = async (what) => {
  const began = performance.now();
  const end = await what.catch((error) => error.code);
  console.log(JSON.stringify([end, Math.round(performance.now() - began)]));
};`;

const lines = (program) => program.out.trim().split('\n').filter((line) => line !== 'end').map((line) => JSON.parse(line));
const within = ([, lasted], limit) => assert.ok(lasted < limit + SLACK, `it lasted for ${lasted} ms`);

// They wait most of the time, so they do it beside each other.
const beside = (body) => ['ioredis', 'node-redis', 'http'].forEach((over) => describe(`over ${over}`, { concurrency: 1 }, () => body(over)));

describe('a server in a hole', { concurrency: true }, () => beside((over) => {
  const way = (port) => ({ url: `${over === 'http' ? 'http' : 'redis'}://127.0.0.1:${port}`, env: { FENCELOCK_OVER: over } });

  for (const [what, accepts] of [['that answers nothing', true], ['that does not even accept', false]]) {
    test(`a server ${what} is given up, and lets the process end`, async (t) => {
      const hole = await Hole.open({ accepts });
      t.after(() => hole.close());
      const script = `${TIMED}
        await timed(connect(url, { connectTimeout: 500 }));
        console.log('end');`;
      const program = await run(script, way(hole.port));
      ended(program, UNAWAITED + SLACK);
      const [connected] = lines(program);
      assert.equal(connected[0], 'unavailable');
      within(connected, 500);
    });
  }

  /** Runs the script; when it says so the server is gone, and the hole is there. */
  async function falling(t, store, script, ttl) {
    const front = over === 'http' ? await serve(store.url) : undefined;
    const port = Number(new URL(front?.url ?? store.url).port);
    const falls = async () => {
      await Promise.all([store.redis.stop(), front?.close()]);
      store.redis = { stop() {} };
      const hole = await Hole.open({ port });
      t.after(() => hole.close());
    };
    const program = `${TIMED}
      const fallen = () => new Promise((resolve) => {
        const stay = setInterval(() => {}, 1_000);
        process.once('SIGUSR2', () => { clearInterval(stay); resolve(); });
        console.log('"ready"');
      });
      const client = await connect(url, { ttl: ${ttl}, timeout: 800 });
      const guard = await client.lock('held').acquire();
      guard.signal.addEventListener('abort', () => {});
      // Kept to the end: a guard that is collected is warned of.
      process.once('exit', () => guard.token);
      ${script}
      console.log('end');`;
    const heard = async (text, child) => {
      if (!text.includes('ready')) return;
      await falls();
      child.kill('SIGUSR2');
    };
    return run(program, { ...way(port), heard });
  }

  onRedis(`a server that falls into a hole`, (store) => {
    test('all ends in time', async (t) => {
      const program = await falling(t, store, `
        await fallen();
        await timed(client.lock('other').tryAcquire());
        await timed(client.lock('other').acquire({ wait: 1_000 }));
        await timed(guard.release());
        await timed(client.close());`, 60_000);
      const [, tried, waited, released, closed] = lines(program);
      assert.deepEqual([tried[0], waited[0], released[0], closed[0]], ['unavailable', 'unavailable', 'unconfirmed', null]);
      within(tried, 800);
      within(waited, 1_000);
      within(released, 800);
      within(closed, CLOSING);
      ended(program, UNAWAITED + SLACK, 'TROUBLE');
    });
  });

  onRedis(`a server that falls into a hole under a process with nothing more to do`, (store) => {
    test('lets it end', async (t) => {
      const program = await falling(t, store, `
        await fallen();
        // Meanwhile it is to be renewed, over connections that are to be made.
        await new Promise((resolve) => setTimeout(resolve, 2_000));`, 3_000);
      ended(program, UNAWAITED + LAST + SLACK, 'LOST');
    });
  });
}));
