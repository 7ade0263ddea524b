// What the door costs: a call that answers at once, and acquire + release in memory, where the store costs next to nothing.
//
//   node scripts/overhead.mjs [FOLDER the package is installed in]
import { createRequire } from 'node:module';
import { resolve } from 'node:path';

const folder = resolve(process.argv[2] ?? '.');
const { connect } = createRequire(`${folder}/`)('fencelock');
const ROUNDS = 5;

/** The median time of one of `count`, in microseconds. */
async function median(count, round) {
  await round();
  const times = [];
  for (let number = 0; number < ROUNDS; number++) {
    const begin = performance.now();
    await round();
    times.push(((performance.now() - begin) * 1000) / count);
  }
  return times.sort((one, other) => one - other)[ROUNDS >> 1];
}

const client = await connect('memory:overhead');
const guard = await client.lock('held').acquire();
const calls = 200_000;
const looks = await median(calls, () => {
  for (let number = 0; number < calls; number++) if (!guard.isHeld) throw new Error('it is held');
});
await guard.release();
console.log(`guard.isHeld: ${looks.toFixed(3)} µs`);

for (const tasks of [1, 16, 64]) {
  const pairs = 20_000;
  const task = async (number) => {
    const lock = client.lock(`lock:${number}`);
    for (let pair = 0; pair < pairs / tasks; pair++) await (await lock.acquire()).release();
  };
  const each = await median(pairs, () => Promise.all(Array.from({ length: tasks }, (_, number) => task(number))));
  console.log(`acquire + release in memory, ${tasks} in flight: ${each.toFixed(1)} µs a pair`);
}
await client.close();
