// redis-semaphore's Mutex, and node-redlock, on the bench's courses; see src/subject/mod.rs for the protocol.
import { openSync, readSync, writeSync } from "node:fs";
import { Redis } from "ioredis";
import { Mutex, RedlockMutex } from "redis-semaphore";
import Redlock from "redlock";

const [library, workload, ...words] = process.argv.slice(2);
const course = Object.fromEntries(words.map((word) => word.split(/=(.*)/s)));
const servers = course.servers?.split(",").map((server) => `redis://${server}`) ?? [course.url];
const clients = servers.map((server) => new Redis(server));
const redlock = new Redlock(clients, { retryCount: -1 });
const microseconds = () => performance.now() * 1000;
const rest = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** Waits as long as it takes; the retries stay at their default delay. */
async function acquire(key, lockTimeout = 30_000) {
  if (library === "node-redlock") {
    const lock = await redlock.acquire([key], lockTimeout);
    return { release: () => lock.release() };
  }
  const options = { lockTimeout, acquireTimeout: 2 ** 31 };
  const mutex = clients.length > 1 ? new RedlockMutex(clients, key, options) : new Mutex(clients[0], key, options);
  await mutex.acquire();
  return mutex;
}

function ready() {
  process.stdout.write("ready\n");
  return new Promise((done) => process.stdin.once("data", done));
}

async function pair() {
  const pairs = Number(course.pairs);
  const once = async () => (await acquire(course.key)).release();
  for (let number = 0; number < pairs / 10; number++) await once();
  await ready();
  const [times, acquires] = [new Float64Array(pairs), new Float64Array(pairs)];
  for (let number = 0; number < pairs; number++) {
    const begin = microseconds();
    const mutex = await acquire(course.key);
    acquires[number] = microseconds() - begin;
    await mutex.release();
    times[number] = microseconds() - begin;
  }
  times.sort();
  acquires.sort();
  const at = (part) => times[Math.floor((pairs - 1) * part)];
  return { p50_us: at(0.5), p99_us: at(0.99), pairs, acquire_p50_us: acquires[pairs >> 1] };
}

async function parallel() {
  let pairs = 0;
  for (let number = 0; number < Number(course.keys); number++) {
    (async () => {
      for (;;) {
        await (await acquire(`${course.key}:${number}`)).release();
        pairs++;
      }
    })();
  }
  await ready();
  const [begin, before] = [microseconds(), pairs];
  await rest(Number(course.milliseconds));
  return { pairs_per_s: (pairs - before) / ((microseconds() - begin) / 1e6) };
}

/** The last holder of the lock: in memory, or in a file that several processes share. */
function openTurn(path) {
  if (!path) {
    let last = -1n;
    return { read: () => last, write: (me) => (last = me) };
  }
  const file = openSync(path, "r+");
  const bytes = Buffer.alloc(8);
  return {
    read: () => (readSync(file, bytes, 0, 8, 0), bytes.readBigUInt64LE()),
    write: (me) => (bytes.writeBigUInt64LE(me), writeSync(file, bytes, 0, 8, 0)),
  };
}

async function contend() {
  const turn = openTurn(course.turn);
  const section = Number(course.section_us) / 1000;
  const acquired = new Array(Number(course.tasks)).fill(0);
  const waitsSince = new Array(acquired.length).fill(undefined);
  const waits_us = [];
  let [handed, held] = [0, 0];
  await (await acquire(`${course.key}:warm:${course.first}`)).release();
  await ready();
  const begin = microseconds();
  acquired.forEach(async (_, task) => {
    const me = BigInt(Number(course.first) + task);
    for (;;) {
      const asked = (waitsSince[task] = microseconds());
      const mutex = await acquire(course.key);
      const won = microseconds();
      waitsSince[task] = undefined;
      acquired[task]++;
      if (turn.read() !== me) {
        handed++;
        turn.write(me);
      }
      if (section > 0) {
        waits_us.push(Math.floor(won - asked));
        await rest(section);
      }
      held += microseconds() - won;
      await mutex.release();
    }
  });
  await rest(Number(course.milliseconds));
  const now = microseconds();
  for (const since of waitsSince) if (since) waits_us.push(Math.floor(now - since));
  return { acquired, handed, held_s: held / 1e6, seconds: (now - begin) / 1e6, waits_us };
}

async function leases() {
  const ttl = Number(course.ttl);
  await (await acquire(`${course.key}:0`, ttl)).release();
  const resident = () => process.memoryUsage().rss / 2 ** 20;
  const idle = resident();
  const mutexes = [];
  for (let number = 0; number < Number(course.leases); number += 64) {
    const end = Math.min(number + 64, Number(course.leases));
    const some = Array.from({ length: end - number }, (_, i) => acquire(`${course.key}:${number + i}`, ttl));
    mutexes.push(...(await Promise.all(some)));
  }
  await ready();
  const [begin, cpu] = [microseconds(), process.cpuUsage()];
  await rest(Number(course.milliseconds));
  const { user, system } = process.cpuUsage(cpu);
  return {
    cpu_percent: (100 * (user + system)) / (microseconds() - begin),
    above_idle_mb: resident() - idle,
    lost: mutexes.filter((mutex) => !mutex.isAcquired).length,
  };
}

const figures = await { pair, parallel, contend, leases }[workload]();
process.stdout.write(JSON.stringify(figures) + "\n", () => process.exit(0));
