// Whatever takes a signal, given up at random points.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'fencelock';
import { chance, share } from './support/chance.js';
import { atRest } from './support/rest.js';
import { fresh, onEveryStore } from './support/stores.js';

/** The same every time, and another one each time in full; `FENCELOCK_SEED` repeats it. */
const SEED = Number(process.env.FENCELOCK_SEED ?? (process.env.FENCELOCK_FULL ? Date.now() % 1_000_000_000 : 20_211));
const CANCELS = share(5_000);
/** So many at once, over so many names of each kind. */
const [WORKERS, NAMES] = [16, 4];
/** The shortest period, so that a job may start again soon. */
const MOMENT = 10;

const names = (what) => Array.from({ length: NAMES }, () => fresh(what));
const [mutexes, shared, permits, elections, jobs] = ['mutex', 'shared', 'permits', 'election', 'job'].map(names);
let instants = 0;

/**
 * The operations that can be given up, each beside others of its kind: `won` gets what was granted under the signal and records it
 * at once. The returned value is given back.
 */
const WAYS = {
  acquire: ({ by, pick, signal, won }) => won(by.lock(pick(mutexes)).acquire({ signal })),
  try: ({ by, pick, signal, won }) => won(by.lock(pick(mutexes)).tryAcquire({ signal })),
  all: ({ by, pick, signal, won }) => won(by.all(new Set([pick(mutexes), pick(mutexes)])).acquire({ signal })),
  read: ({ by, pick, signal, won }) => won(by.readLock(pick(shared)).acquire({ signal })),
  write: ({ by, pick, signal, won }) => won(by.writeLock(pick(shared)).acquire({ signal })),
  permits: ({ by, pick, signal, won }) => won(by.semaphore(pick(permits), 2).acquire({ signal })),
  campaign: ({ by, pick, signal, won }) => won(by.election(pick(elections)).campaign({ signal })),
  start: ({ by, pick, signal, won }) => won(by.job(pick(jobs), MOMENT).start({ signal, at: (instants += 1_000) }).then(({ run }) => run)),
  async scope({ by, pick, signal, won, giveBack }) {
    const lock = by.reentrant(pick(mutexes));
    giveBack(await won(lock.acquire({ signal })));
    giveBack(await won(lock.acquire({ signal })));
  },
  // Of these the end is the body's, or an observer's.
  using: ({ by, pick, signal, body }) => by.lock(pick(mutexes)).using(body, { signal }).then(() => {}),
  job: ({ by, pick, signal, body }) => by.job(pick(jobs), MOMENT).using(body, { signal, at: (instants += 1_000) }).then(() => {}),
  async observe({ by, pick, signal }) {
    let seen = 0;
    for await (const _ of by.election(pick(elections)).observe({ signal })) if (++seen === 3) return;
  },
};

onEveryStore('a storm', (store) => {
  let clients;
  const rejections = [];
  const note = (reason) => rejections.push(reason);
  before(async () => {
    process.on('unhandledRejection', note);
    clients = [await connect(store.url, { ttl: 20_000, observe: 10 }), await connect(store.url, { ttl: 20_000, observe: 10 })];
  });
  after(async () => {
    for (const client of clients) await client.close();
    process.off('unhandledRejection', note);
    assert.deepEqual(rejections, []);
  });

  test(`of ${CANCELS} cancels leaves nothing behind (seed ${SEED})`, { timeout: 240_000 }, async (t) => {
    const draw = chance(SEED);
    const pick = (list) => list[Math.floor(draw() * list.length)];
    const counts = Object.fromEntries(Object.keys(WAYS).map((way) => [way, { cancelled: 0, granted: 0 }]));
    const sum = (what) => Object.values(counts).reduce((all, count) => all + count[what], 0);
    let swallowed = 0;
    const end = (held) => (held?.instant === undefined ? held?.release() : draw() < 0.5 ? held.succeed() : held.fail());

    async function once() {
      const way = pick(Object.keys(WAYS));
      const controller = new AbortController();
      const { signal } = controller;
      const delay = draw() * 6;
      if (delay < 1) queueMicrotask(() => controller.abort());
      else if (delay < 2) setImmediate(() => controller.abort());
      else setTimeout(() => controller.abort(), delay - 2);
      let overdue = false;
      signal.addEventListener('abort', () => setImmediate(() => (overdue = true)));
      const won = async (granting) => {
        const granted = await granting;
        // A turn after the abort it would have had to reject.
        swallowed += overdue;
        return granted;
      };
      const held = [];
      const body = (guard, lost) => sleep(draw() * 2, undefined, { signal: lost });
      try {
        const got = await WAYS[way]({ by: pick(clients), pick, signal, won, body, giveBack: (guard) => held.push(guard) });
        held.push(got);
        counts[way].granted++;
        if (draw() < 0.3) await sleep(draw() * 2);
      } catch (error) {
        assert.equal(error.name, 'AbortError', error.stack);
        counts[way].cancelled++;
      }
      for (const guard of held) await end(guard);
    }
    const worker = async () => {
      // It ends also where a signal does nothing.
      while (sum('cancelled') < CANCELS && sum('granted') < 10 * CANCELS) await once();
    };
    await Promise.all(Array.from({ length: WORKERS }, worker));
    t.diagnostic(Object.entries(counts).map(([way, { cancelled, granted }]) => `${way} ${cancelled}/${granted}`).join(', '));
    assert.equal(swallowed, 0);
    assert.ok(sum('cancelled') >= CANCELS && sum('granted') > 0, JSON.stringify(counts));
    assert.deepEqual(Object.keys(counts).filter((way) => counts[way].cancelled === 0), []);
    const runs = jobs.map((name) => clients[0].job(name, MOMENT));
    await atRest(store, clients, [...mutexes, ...shared, ...permits, ...elections], runs);
  });
});
