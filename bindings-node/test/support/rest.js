// What is left when all is over.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

/** Nothing is carried, nobody holds, nobody waits, no run is in progress; five seconds are for what has to be undone. */
export async function atRest(store, clients, names, jobs = []) {
  const [client] = clients;
  const left = async () => {
    const loads = clients.flatMap((one) => Object.values(one.stats()));
    const states = await Promise.all(names.map((name) => client.lock(name).inspect()));
    const runs = await Promise.all(jobs.map((job) => job.inspect()));
    const locks = states.flatMap(({ holders, waiters }) => [holders.length, waiters.length]);
    return [...loads, ...locks, ...runs.map((run) => Number(run?.status === 'in_progress'))];
  };
  const end = performance.now() + 5_000;
  let seen;
  do seen = await left();
  while (seen.some((count) => count > 0) && performance.now() < end && (await sleep(5, true)));
  assert.ok(seen.every((count) => count === 0), `left: ${seen}`);
  if (store.redis) assert.deepEqual(await store.redis.leftovers(), []);
}
