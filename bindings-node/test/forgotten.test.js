import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { run } from './support/program.js';
import { onRedis } from './support/stores.js';

const COLLECT = `
  const collected = async (done, rounds = 200) => {
    for (let round = 0; round < rounds && !done(); round++) {
      globalThis.gc();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  const warnings = [];
  process.on('warning', (warning) => warnings.push(warning));
`;
const flags = ['--expose-gc', '--no-warnings'];

describe('a forgotten guard', () => {
  test('is released, and warned about once', async () => {
    const script = `${COLLECT}
      const client = await connect(url);
      await (async () => { await client.lock('forgotten').acquire(); })();
      await collected(() => warnings.length > 0);
      const guard = await client.lock('forgotten').tryAcquire();
      await collected(() => false, 20);
      console.log(JSON.stringify(warnings.map(({ name, code, message }) => [name, code, message.includes('"forgotten"')])));
      console.log(await guard?.release());`;
    const program = await run(script, { flags });
    assert.deepEqual([program.err, program.code], ['', 0]);
    assert.equal(program.out, '[["FencelockWarning","FENCELOCK_FORGOTTEN",true]]\nreleased\n');
  });

  test('is not one whose signal is listened to, nor one that was released', async () => {
    const script = `${COLLECT}
      const client = await connect(url);
      const signal = await (async () => (await client.lock('kept').acquire()).signal)();
      await (async () => (await client.lock('released').acquire()).release())();
      await (async () => { const guard = await client.lock('looked').acquire(); guard.signal; await guard.release(); })();
      await collected(() => warnings.length > 0, 20);
      console.log(await client.lock('kept').tryAcquire(), signal.aborted, warnings.length);`;
    const program = await run(script, { flags });
    assert.deepEqual([program.out, program.err, program.code], ['null false 0\n', '', 0]);
  });

  test('U01: is not one that was used, in whatever way', async () => {
    const script = `${COLLECT}
      const { once } = await import('node:events');
      const ways = {
        name: (guard) => guard.name,
        token: (guard) => guard.token,
        isHeld: (guard) => guard.isHeld,
        remaining: (guard) => guard.remaining,
        check: (guard) => guard.check(),
        extend: (guard) => guard.extend(30_000),
        listener: (guard) => guard.signal.addEventListener('abort', () => {}),
        onabort: (guard) => { guard.signal.onabort = () => {}; },
        any: (guard) => { AbortSignal.any([guard.signal]).onabort = () => {}; },
        once: (guard) => { once(guard.signal, 'abort').catch(() => {}); },
      };
      const client = await connect(url);
      // One may hold each of them.
      const kinds = [(name) => client.lock(name), (name) => client.writeLock(name), (name) => client.semaphore(name, 1)];
      const of = (way, number) => kinds[number % kinds.length](way + number);
      for (const [way, use] of Object.entries(ways))
        for (let number = 0; number < 1_000; number++)
          await (async () => { await use(await of(way, number).acquire()); })();
      await (async () => { (await client.election('leader').campaign()).signal.onabort = () => {}; })();
      await collected(() => warnings.length > 0, 30);
      let free = (await client.election('leader').tryCampaign()) ? 1 : 0;
      for (const way of Object.keys(ways))
        for (let number = 0; number < 1_000; number++) free += (await of(way, number).tryAcquire()) ? 1 : 0;
      console.log(free, warnings.length);`;
    // 1,000 guards for each way, which are collected many times.
    const program = await run(script, { flags, most: 240_000 });
    assert.deepEqual([program.out, program.err, program.code], ['0 0\n', '', 0]);
  });

  test('U01: who waits for the loss alone is told of it', async () => {
    const script = `${COLLECT}
      const { once } = await import('node:events');
      const client = await connect(url);
      const collecting = setInterval(() => globalThis.gc(), 5);
      await once((await client.lock('lost', { ttl: 300, renew: false }).acquire()).signal, 'abort');
      clearInterval(collecting);
      await collected(() => false, 20);
      console.log(warnings.filter(({ code }) => code === 'FENCELOCK_FORGOTTEN').length);`;
    const program = await run(script, { flags });
    assert.deepEqual([program.out, program.err, program.code], ['0\n', '', 0]);
  });

  test('U04: a body that waits for its signal keeps the process', async () => {
    const script = `
      const client = await connect(url);
      const aborted = (signal) => new Promise((resolve) => signal.addEventListener('abort', resolve));
      await client.lock('body', { ttl: 300, renew: false }).using((guard, signal) => aborted(signal)).catch((error) => console.log(error.code));`;
    const program = await run(script, { flags });
    assert.deepEqual([program.out, program.err, program.code], ['lost\n', '', 0]);
  });

  test('keeps its client, and a forgotten client goes', async () => {
    const script = `${COLLECT}
      let guard = await (async () => (await connect(url + 'store')).lock('held').acquire())();
      await collected(() => false, 20);
      console.log(guard.isHeld);
      const other = await connect(url + 'store');
      let gone = false;
      const registry = new FinalizationRegistry(() => (gone = true));
      await (async () => {
        const client = await connect(url + 'store');
        registry.register(client);
        const waiting = client.lock('held').acquire({ wait: 100 }).catch((error) => error.code);
        console.log(await waiting);
      })();
      await collected(() => gone);
      console.log(gone, guard.isHeld, (await other.lock('held').inspect()).waiters.length);`;
    const program = await run(script, { flags });
    assert.deepEqual([program.out, program.err, program.code], ['true\ntimeout\ntrue true 0\n', '', 0]);
  });
});

onRedis('acquires that lost a race', (store) => {
  test('U05: leave nothing, 1,000 of them', async () => {
    const script = `${COLLECT}
      const [holder, client] = [await connect(url), await connect(url)];
      const names = Array.from({ length: 8 }, (_, number) => 'race' + number);
      const held = await Promise.all(names.map((name) => holder.lock(name).acquire()));
      const timer = (after) => new Promise((resolve) => setTimeout(resolve, after));
      await (async () => {
        const races = Array.from({ length: 1_000 }, (_, number) => Promise.race([client.lock(names[number % 8]).acquire(), timer(number % 50)]));
        await Promise.all(races);
      })();
      for (const guard of held) await guard.release();
      const atRest = () => Object.values(client.stats()).every((count) => count === 0);
      await collected(atRest, 10_000);
      console.log(atRest(), warnings.filter(({ code }) => code === 'FENCELOCK_FORGOTTEN').length);`;
    const program = await run(script, { url: store.url, flags, most: 240_000 });
    assert.deepEqual([program.out, program.err, program.code], ['true 1000\n', '', 0]);
    assert.deepEqual(await store.redis.leftovers(), []);
  });
});
