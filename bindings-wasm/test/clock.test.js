// The clock that says how long a guard may be relied on.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Host } from '../node_modules/fencelock-wasm/dist/host.js';

/** How far a clock gets while the wall clock makes this step. */
function over(step, t) {
  const host = new Host(() => {}, (call) => call());
  const [before, real] = [host.now(), Date.now];
  t.mock.method(Date, 'now', () => real() + step);
  const after = host.now();
  t.mock.restoreAll();
  return { took: after - before, host, after };
}

test('time that only the wall clock has seen pass has passed', (t) => {
  const { took } = over(60_000, t);
  assert.ok(took >= 60_000 && took < 61_000, `it was ${took} ms`);
});

test('a wall clock that steps back takes nothing back, and hides no later sleep', (t) => {
  const { took, host, after } = over(-60_000, t);
  assert.ok(took >= 0 && took < 1_000, `it was ${took} ms`);
  // Back to the right time: to this clock that is a minute of sleep, which is the safe side.
  assert.ok(host.now() - after >= 59_000);
});

test('both clocks together are as quick as one', async () => {
  const host = new Host(() => {}, (call) => call());
  const [begin, started] = [host.now(), performance.now()];
  let last = begin;
  while (performance.now() - started < 50) {
    const now = host.now();
    assert.ok(now >= last);
    last = now;
  }
  assert.ok(last - begin < 60, `${last - begin} ms in 50`);
});
