import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from './support/program.js';

const TOOLS = join(process.env.FENCELOCK_SOURCES, 'node_modules', '.bin');

function tool(name, ...words) {
  const { status, stdout, stderr } = spawnSync(join(TOOLS, name), words, { encoding: 'utf8' });
  assert.equal(status, 0, `${stdout}${stderr}`);
}

test('its types are right for every way to resolve them (attw)', () => {
  tool('attw', 'fencelock.tgz', '--format', 'ascii', '--no-emoji', '--profile', 'esm-only');
});

test('it is as publint wants it', () => {
  tool('publint', 'node_modules/fencelock-wasm', '--strict');
});

test('a script that locks and releases ends by itself, and at once', async () => {
  const script = `
    const client = await connect('memory:');
    await (await client.lock('a').acquire()).release();
    client.lock('b').acquire().then(() => console.log('end'));`;
  const { out, err, code, after } = await run(script);
  assert.deepEqual([out, err, code], ['end\n', '', 0]);
  assert.ok(after < 300, `it lived for ${after} ms`);
});
