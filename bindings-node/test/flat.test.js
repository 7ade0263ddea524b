import assert from 'node:assert/strict';
import { test } from 'node:test';
import { share } from './support/chance.js';
import { run } from './support/program.js';
import { onEveryStore } from './support/stores.js';

const PAIRS = share(100_000);
const skip = process.platform !== 'linux' && 'it needs /proc';

/** A process of its own, so that nobody else's files and threads are counted. */
const LIFE = `
  import { readFileSync, readdirSync } from 'node:fs';
  const MEGABYTE = 2 ** 20;
  async function possessions() {
    // What a WeakRef was made for is kept by V8 until the turn of the event loop is over; in memory all pairs may be one turn.
    await new Promise(setImmediate);
    globalThis.gc();
    globalThis.gc();
    const heap = process.memoryUsage().heapUsed / MEGABYTE;
    // Its own memory: pages of the program itself come as they are first run, and go as the system likes.
    const own = Number(/^RssAnon:\\s+(\\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))[1]) / 1024;
    const [files, threads] = ['fd', 'task'].map((what) => readdirSync('/proc/self/' + what).length);
    return { own, heap, files, threads, handles: process.getActiveResourcesInfo().length };
  }
  const client = await connect(url);
  const lock = client.lock('flat');
  // As a program has one for its shutdown.
  const { signal } = new AbortController();
  const take = async (count) => {
    for (let number = 0; number < count; number++) {
      if (number % 2 === 0) {
        await lock.using(() => undefined, { signal });
        continue;
      }
      const guard = await lock.acquire();
      if (number % 10 === 1) guard.signal;
      await guard.release();
    }
  };
  // The least of several moments: V8 gives back in its own time what it took while it worked; what was lost is in every moment.
  const least = async () => {
    let seen = await possessions();
    for (let moment = 0; moment < 9; moment++) {
      await take(200);
      const now = await possessions();
      for (const what in seen) seen[what] = Math.min(seen[what], now[what]);
    }
    return seen;
  };
  await take(5_000);
  const before = await least();
  await take(${PAIRS});
  // What is still under way is not kept: SQLite's log is written back beside the steps, over a file and on a thread of its own.
  // The file is closed when that is done, the thread goes after ten idle seconds.
  let after = await least();
  const end = performance.now() + 15_000;
  while ((after.files > before.files || after.threads > before.threads) && performance.now() < end) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const { files, threads } = await possessions();
    after = { ...after, files, threads };
  }
  await client.close();
  // An end that was told beside the close, as that of a signal, is taken up at the next turn of the event loop.
  for (let turn = 0; turn < 1000 && client.stats().done > 0; turn++) await new Promise(setImmediate);
  console.log(JSON.stringify({ before, after, load: client.stats() }));`;

onEveryStore('a long life', (store) => {
  test(`is flat over ${PAIRS} pairs`, { skip }, async (t) => {
    // V8 gives its nursery 32 MB in time; small from the beginning, it does not look like a leak.
    const flags = ['--expose-gc', '--max-semi-space-size=1'];
    const program = await run(LIFE, { url: store.url, flags, most: 300_000 });
    assert.deepEqual([program.err, program.code], ['', 0]);
    const { before, after, load } = JSON.parse(program.out);
    t.diagnostic(`${store.name}: before ${JSON.stringify(before)}, after ${JSON.stringify(after)}`);
    for (const what of ['files', 'threads', 'handles']) assert.ok(after[what] <= before[what], `${what} have grown`);
    // What code that got warm takes, and 10 bytes a pair: a signal that is followed for ever would be 60.
    assert.ok(after.heap - before.heap < 0.2 + (10 * PAIRS) / 2 ** 20, 'the heap has grown');
    assert.ok(after.own - before.own < 4, 'the process has grown');
    assert.deepEqual(load, { running: 0, done: 0, guards: 0, entries: 0, locks: 0 });
  });
});
