// The package behind ./door.js on the bench's courses; bench/src/subject/mod.rs has the protocol.
import { connect } from './door.js';

const [workload, ...words] = process.argv.slice(2);
const course = Object.fromEntries(words.map((word) => word.split(/=(.*)/s)));
const client = await connect(course.url);
const microseconds = () => performance.now() * 1000;

function ready() {
  process.stdout.write('ready\n');
  return new Promise((done) => process.stdin.once('data', done));
}

async function pair() {
  const pairs = Number(course.pairs);
  const lock = client.lock(course.key);
  for (let number = 0; number < pairs / 10; number++) await (await lock.acquire()).release();
  await ready();
  const [times, acquires] = [new Float64Array(pairs), new Float64Array(pairs)];
  for (let number = 0; number < pairs; number++) {
    const begin = microseconds();
    const guard = await lock.acquire();
    acquires[number] = microseconds() - begin;
    await guard.release();
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
    const lock = client.lock(`${course.key}:${number}`);
    (async () => {
      for (;;) {
        await (await lock.acquire()).release();
        pairs++;
      }
    })();
  }
  await ready();
  const [begin, before] = [microseconds(), pairs];
  await new Promise((done) => setTimeout(done, Number(course.milliseconds)));
  return { pairs_per_s: (pairs - before) / ((microseconds() - begin) / 1e6) };
}

/** Measures the cost of a call into the core that only looks at a guard: the median of eleven rounds. */
async function crossing() {
  const [guard, calls] = [await client.lock('bench:crossing').acquire(), 200_000];
  await ready();
  const rounds = Array.from({ length: 11 }, () => {
    const begin = microseconds();
    for (let number = 0; number < calls; number++) if (!guard.isHeld) throw new Error('it is held');
    return (microseconds() - begin) / calls;
  });
  await guard.release();
  return { crossing_us: rounds.sort((one, other) => one - other)[5] };
}

const figures = await { pair, parallel, crossing }[workload]();
process.stdout.write(`${JSON.stringify(figures)}\n`, () => process.exit(0));
