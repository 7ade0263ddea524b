import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
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

test('a lock can be had while a test holds the clock', async () => {
  const script = `
    const client = await connect('memory:');
    const standing = () => ({});
    for (const name of ['queueMicrotask', 'setImmediate', 'setInterval', 'setTimeout']) globalThis[name] = standing;
    await (await client.lock('a').acquire()).release();
    console.log('end');`;
  const { out, err, code } = await run(script);
  assert.deepEqual([out, err, code], ['end\n', '', 0]);
});

test('clients of both packages are taken as they are typed', () => {
  const program = `
    import { http, ioredis, nodeRedis, type Transport } from 'fencelock-wasm';
    import { Redis } from 'ioredis';
    import { createClient } from 'redis';
    export const all = (url: string): Transport[] => [ioredis(new Redis(url)), nodeRedis(createClient({ url })), http({ url, token: '' })];`;
  mkdirSync('types', { recursive: true });
  writeFileSync(join('types', 'transports.ts'), program);
  const compilerOptions = {
    module: 'node16',
    target: 'es2022',
    lib: ['es2023', 'esnext.disposable', 'dom'],
    types: ['node'],
    typeRoots: [join(process.env.FENCELOCK_SOURCES, 'node_modules', '@types')],
    strict: true,
    // Those of the clients are their own affair.
    skipLibCheck: true,
    noEmit: true,
  };
  writeFileSync(join('types', 'package.json'), '{ "type": "module" }');
  writeFileSync(join('types', 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['transports.ts'] }));
  tool('tsc', '--project', 'types');
});

// What the host throws goes through the core; at too few random bytes the core itself panics.
const BREAKS = {
  'an exception of the host': `() => { throw new Error('no chance'); }`,
  'a panic of the core': '() => new Uint8Array(1)',
};

for (const [what, random] of Object.entries(BREAKS)) test(`${what} is told as \`internal\`, and nothing is held any more`, async () => {
  const script = `
    const client = await connect('memory:', { ttl: 60_000 });
    const guard = await client.lock('a').acquire();
    const aborted = new Promise((resolve) => guard.signal.addEventListener('abort', () => resolve(guard.signal.reason.code)));
    crypto.getRandomValues = ${random};
    const seen = [];
    await client.lock('b').acquire().catch((error) => seen.push(error.code));
    seen.push(await aborted, guard.isHeld, guard.remaining);
    for (const ask of [() => client.stats(), () => client.guarantees(), () => client.options, () => client.scope(), () => guard.check()]) {
      try { ask(); } catch (error) { seen.push(error.name, error.code); }
    }
    console.log(JSON.stringify(seen));`;
  const { out, err, code } = await run(script);
  assert.deepEqual([err, code], ['', 0]);
  const internal = ['FencelockError', 'internal'];
  assert.deepEqual(JSON.parse(out), ['internal', 'internal', false, 0, ...internal, ...internal, ...internal, ...internal, ...internal]);
});
