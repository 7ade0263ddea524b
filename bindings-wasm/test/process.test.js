// How a process ends whose clients nobody has closed, over every way to Redis.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connect } from 'fencelock';
import { serve } from '../rest.js';
import { ended, losing, run, SLACK } from './support/program.js';
import { fresh, onRedis } from './support/stores.js';

/** So long it waits for a store that does not answer. */
const LAST = 1_000;
/** The key that is there while the lock is held. */
const held = (name) => `fencelock:{${name}}:held:${name}`;
/** Until it is told, the process stays. */
const TOLD = `await new Promise((resolve) => {
  const stay = setInterval(() => {}, 1_000);
  process.once('SIGUSR2', () => { clearInterval(stay); console.log('end'); resolve(); });
  console.log('ready');
});`;

for (const over of ['ioredis', 'node-redis', 'http']) {
  onRedis(`a process over ${over}`, (store) => {
    let server;
    let way;
    before(async () => {
      // What serves it belongs to this process, not to the one that ends.
      server = over === 'http' ? await serve(store.url) : undefined;
      way = { url: server?.url ?? store.url, env: { FENCELOCK_OVER: over } };
    });
    after(() => server?.close());

    /** Whether another process' lock is free now. */
    async function isFree(name) {
      const client = await connect(store.url);
      const guard = await client.lock(name).tryAcquire();
      await guard?.release();
      await client.close();
      return guard !== null;
    }

    /** Runs a script up to where it waits to be told, does something, and tells it. */
    const runUntilTold = (script, does) =>
      run(script, {
        ...way,
        heard: async (text, child) => {
          if (!text.includes('ready')) return;
          await does();
          child.kill('SIGUSR2');
        },
      });

    test('that locks and releases ends by itself', async () => {
      const script = `
        const client = await connect(url);
        const guard = await client.lock(${JSON.stringify(fresh())}).acquire();
        client.on('lost', () => {});
        guard.signal;
        await guard.release();
        console.log('end');`;
      ended(await run(script, way));
    });

    test('is kept alive by an acquire that is awaited', async () => {
      const script = `
        const client = await connect(url);
        const guard = await client.lock('held').acquire();
        await client.lock('held').acquire({ wait: 700 }).catch((error) => console.log(error.code));
        await guard.release();
        console.log('end');`;
      const program = await run(script, way);
      ended(program);
      assert.equal(program.out, 'timeout\nend\n');
    });

    test('that has nothing more to do gives back what it holds', async () => {
      const name = fresh();
      const script = `
        const client = await connect(url, { ttl: 60_000 });
        const guard = await client.lock(${JSON.stringify(name)}).acquire();
        guard.signal.addEventListener('abort', () => {});
        console.log('end');`;
      ended(await run(script, way), SLACK);
      assert.ok(await isFree(name));
    });

    for (const [how, end, code] of [
      ['exits', 'process.exit(0);', 0],
      ['exits beside its release', 'guard.release(); process.exit(0);', 0],
      ['exits in the middle of a wait', 'client.lock(name).acquire(); setTimeout(() => process.exit(0), 50);', 0],
      ['dies of its own error', 'throw new RangeError("its own");', 1],
    ]) {
      test(`that ${how} ends at once, and leaves what it holds to its lease`, async () => {
        const name = fresh();
        const script = `
          const name = ${JSON.stringify(name)};
          const client = await connect(url, { ttl: 60_000 });
          const guard = await client.lock(name).acquire();
          console.log('end');
          ${end}`;
        const program = await run(script, way);
        assert.deepEqual([program.code, program.signal], [code, null]);
        assert.match(program.err, code === 0 ? /^$/ : /RangeError: its own/);
        assert.ok(program.after < SLACK, `it lived on for ${program.after} ms`);
        const left = Number(await store.redis.command('PTTL', held(name)));
        assert.ok(left > 0 && left <= 60_000, `${left} ms are left`);
      });
    }

    test('does not die of a lost lock', async () => {
      const program = await run(losing(fresh()), way);
      assert.deepEqual([program.out, program.code], ['false\n', 0]);
      assert.match(program.err, /^\(node:\d+\) \[FENCELOCK_LOST\] FencelockWarning: lost /);
    });

    test('whose store hangs ends all the same', async () => {
      const script = `
        const client = await connect(url, { ttl: 3_000 });
        await client.lock(${JSON.stringify(fresh())}).acquire();
        ${TOLD}`;
      // When it is told, there is a renewal that nobody answers.
      const program = await runUntilTold(script, async () => {
        store.redis.signal('SIGSTOP');
        await new Promise((resolve) => setTimeout(resolve, 1_200));
      });
      store.redis.signal('SIGCONT');
      ended(program, LAST + SLACK);
    });

    test('that is revived by somebody else may go on', async () => {
      const [first, second] = [fresh(), fresh()];
      const script = `
        process.once('beforeExit', async () => {
          const other = await connect(url, { ttl: 60_000 });
          await other.lock(${JSON.stringify(second)}).acquire();
          console.log(guard.isHeld, guard.signal.aborted);
          console.log('end');
        });
        const client = await connect(url, { ttl: 60_000 });
        const guard = await client.lock(${JSON.stringify(first)}).acquire();
        guard.signal;`;
      const program = await run(script, way);
      ended(program, SLACK);
      assert.equal(program.out, 'false true\nend\n');
      assert.deepEqual(await Promise.all([first, second].map(isFree)), [true, true]);
    });

    test('whose store is gone ends all the same', async () => {
      const script = `
        const client = await connect(url, { ttl: 60_000 });
        await client.lock(${JSON.stringify(fresh())}).acquire();
        ${TOLD}`;
      const gone = () => Promise.all([store.redis.stop(), server?.close()]);
      ended(await runUntilTold(script, gone), LAST + SLACK);
      store.redis = { stop() {} };
    });
  });
}

for (const [over, quit] of [
  ['ioredis', "const own = new (await import('ioredis')).Redis(url); const transport = wasm.ioredis(own);"],
  ['node-redis', "const own = await (await import('redis')).createClient({ url }).connect(); const transport = wasm.nodeRedis(own);"],
]) {
  onRedis(`a process with a client of its own, ${over}`, (store) => {
    test('ends when it has quit that one', async () => {
      const name = fresh();
      const script = `
        const wasm = await import('fencelock-wasm');
        ${quit}
        const client = await wasm.connect(transport, { ttl: 60_000 });
        const guard = await client.lock(${JSON.stringify(name)}).acquire();
        await own.${over === 'ioredis' ? 'quit' : 'close'}();
        console.log(guard.isHeld);
        await client.lock(${JSON.stringify(fresh())}).using(() => {});
        console.log('end');`;
      const program = await run(script, store);
      ended(program, SLACK);
      assert.equal(program.out, 'true\nend\n');
      assert.equal(await store.redis.command('EXISTS', held(name)), '0');
    });
  });
}
