// The package where bundlers put it: a Cloudflare Worker, a page by esbuild, a page by webpack. The full length only, since
// test.sh downloads the bundlers.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createServer } from 'node:http';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { answering, TOKEN } from '../rest.js';
import { fresh, onRedis } from './support/stores.js';

const require = createRequire(resolve('bundlers', 'package.json'));
const { build } = require('esbuild');
const { Miniflare } = require('miniflare');
const webpack = require('webpack');

const FOLDER = resolve('bundles');
mkdirSync(FOLDER, { recursive: true });
writeFileSync(join(FOLDER, 'package.json'), '{ "type": "module" }');

function program(name, text) {
  const file = join(FOLDER, name);
  writeFileSync(file, text);
  return file;
}

/** A lock is taken, and `held` is printed. `module` is how the package is told where its core is. */
const page = (imports, module) => `
  import { connect } from 'fencelock-wasm';
  ${imports}
  const client = await connect('memory:', { ${module} });
  await client.lock('orders:42').using((guard) => guard.isHeld && console.log('held'));
  await client.close();`;

function prints(file) {
  const { stdout, stderr } = spawnSync(process.execPath, [file], { encoding: 'utf8' });
  assert.equal(stdout, 'held\n', stderr.slice(0, 2_000));
}

test('a bundle of esbuild has the core inside', async () => {
  const entry = program('esbuild.js', page(`import module from 'fencelock-wasm/core.wasm';`, 'module'));
  const outfile = join(FOLDER, 'esbuild', 'page.js');
  const loader = { '.wasm': 'binary' };
  await build({ entryPoints: [entry], bundle: true, format: 'esm', platform: 'browser', target: 'es2022', loader, outfile });
  prints(outfile);
});

test('a bundle without the core says how to pass it', async () => {
  const entry = program('without.js', page('', ''));
  const outfile = join(FOLDER, 'without', 'page.js');
  await build({ entryPoints: [entry], bundle: true, format: 'esm', platform: 'browser', target: 'es2022', outfile });
  const { stderr, status } = spawnSync(process.execPath, [outfile], { encoding: 'utf8' });
  assert.equal(status, 1);
  assert.match(stderr, /core_bg\.wasm of fencelock-wasm could not be loaded.*connect\(store, \{ module \}\)/);
});

test('webpack finds the core by itself', async () => {
  const entry = program('webpack.js', page('', ''));
  const output = { path: join(FOLDER, 'webpack'), filename: 'page.js', module: true };
  const compiler = webpack({ mode: 'production', entry, target: ['web', 'es2022'], experiments: { outputModule: true }, output });
  const stats = await new Promise((done, fail) => compiler.run((error, stats) => (error ? fail(error) : done(stats))));
  assert.ok(!stats.hasErrors(), stats.toString('errors-only'));
  prints(join(output.path, output.filename));
});

/** Answers how often it was asked; what counts waits between reading and writing, so it counts right under a lock only. */
const WORKER = `
  import { connect, http } from 'fencelock-wasm';
  let count = 0;
  export default {
    async fetch(request, { url, token, name }) {
      const client = await connect(url ? http({ url, token }) : 'memory:', { ttl: 10_000, wait: 30_000 });
      await client.lock(name).using(async () => {
        const seen = count;
        await new Promise((resolve) => setTimeout(resolve, 5));
        count = seen + 1;
      });
      await client.close();
      return new Response(String(count));
    },
  };`;
const TIMES = 8;

onRedis('a Cloudflare Worker', (store) => {
  let rest;
  let server;
  let modules;
  before(async () => {
    rest = answering(store.url);
    server = createServer((request, response) => rest.answer(request, response));
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    const outdir = join(FOLDER, 'worker');
    const { metafile } = await build({
      entryPoints: [program('worker.js', WORKER)],
      bundle: true,
      format: 'esm',
      target: 'es2022',
      conditions: ['workerd'],
      loader: { '.wasm': 'copy' },
      metafile: true,
      outdir,
    });
    const files = Object.keys(metafile.outputs).map((path) => resolve(path));
    const isScript = (path) => path.endsWith('.js');
    modules = [...files.filter(isScript), ...files.filter((path) => !isScript(path))].map((path) => ({
      type: isScript(path) ? 'ESModule' : 'CompiledWasm',
      path,
    }));
  });
  after(() => {
    server.closeAllConnections();
    server.close();
    rest.close();
  });

  for (const compatibilityFlags of [[], ['nodejs_compat']])
    for (const where of ['memory', 'HTTP'])
      test(`counts right in ${where} ${compatibilityFlags}`, async () => {
        const url = where === 'HTTP' ? `http://127.0.0.1:${server.address().port}` : '';
        const bindings = { url, token: TOKEN, name: fresh() };
        const modulesRoot = join(FOLDER, 'worker');
        const worker = new Miniflare({ modules, modulesRoot, compatibilityDate: '2025-05-05', compatibilityFlags, bindings });
        try {
          const asked = Array.from({ length: TIMES }, async () => (await worker.dispatchFetch('http://here/')).text());
          const counts = (await Promise.all(asked)).map(Number);
          assert.equal(Math.max(...counts), TIMES, String(await asked[0]));
        } finally {
          await worker.dispose();
        }
      });
});
