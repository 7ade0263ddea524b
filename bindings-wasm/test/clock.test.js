// The clock that says how long a guard may be relied on.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Host } from '../node_modules/fencelock-wasm/dist/host.js';

/** A clock over two that the test moves: what it says is exact. */
function moved(t) {
  const time = { clock: 1_000, date: 1_700_000_000_000 };
  t.mock.method(performance, 'now', () => time.clock);
  t.mock.method(Date, 'now', () => time.date);
  const host = new Host(() => {}, (call) => call());
  const begin = host.now();
  const step = (clock, date = clock) => {
    time.clock += clock;
    time.date += date;
  };
  const pass = (clock, date) => {
    step(clock, date);
    return host.now() - begin;
  };
  return Object.assign(pass, { step, date: () => time.date });
}

test('time that only the wall clock has seen pass has passed', (t) => {
  const pass = moved(t);
  assert.equal(pass(5, 60_005), 60_005);
  assert.equal(pass(1_000, 1_000), 61_005);
});

test('a wall clock that steps back takes nothing back, and hides no later sleep', (t) => {
  const pass = moved(t);
  assert.equal(pass(5, -60_000), 5);
  assert.equal(pass(0, 30_000), 30_005);
});

test('both clocks together are as quick as one, though one shows whole milliseconds only', (t) => {
  const pass = moved(t);
  let last = 0;
  for (let step = 1; step <= 400; step++) {
    const now = pass(0.25, step % 4 === 0 ? 1 : 0);
    assert.ok(now >= last);
    last = now;
  }
  assert.equal(last, 100);
});

// Seen as a wait of 200 ms that ended after 170, on a machine with much other work.
test('to be held up between the looks at both clocks is no sleep', (t) => {
  for (const first of [true, false]) {
    const pass = moved(t);
    const held = t.mock.method(Date, 'now', () => {
      pass.step(first ? 30 : 0);
      const date = pass.date();
      pass.step(first ? 0 : 30);
      return date;
    });
    assert.equal(pass(100, 100), 130);
    held.mock.restore();
    assert.equal(pass(1, 1), 131);
  }
});

test('a sleep during which the process was held up is seen at the next look', (t) => {
  const pass = moved(t);
  const held = t.mock.method(Date, 'now', () => {
    pass.step(30, 60_030);
    return pass.date();
  });
  assert.equal(pass(0, 0), 30);
  held.mock.restore();
  assert.equal(pass(1, 1), 60_031);
});

test('U06: a stopped timer that rings all the same does nothing', async () => {
  const host = new Host(() => {}, (call) => call());
  const clear = globalThis.clearTimeout;
  globalThis.clearTimeout = () => {};
  try {
    let calls = 0;
    host.stop(host.after(1, () => (calls += 1)));
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(calls, 0);
  } finally {
    globalThis.clearTimeout = clear;
  }
});
