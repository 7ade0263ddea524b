// The package where bundlers and other runtimes put it: a Cloudflare Worker, a page by esbuild or webpack, Next.js, Bun, Deno. The full
// length only, since test.sh downloads them.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { connect, http } from 'fencelock-wasm';
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

/** Serves over HTTP what lies on a store, from a `before` on, and answers how to be asked. */
function served(store) {
  const at = { token: TOKEN };
  let rest;
  let server;
  before(async () => {
    rest = answering(store.url);
    server = createServer((request, response) => rest.answer(request, response));
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    at.url = `http://127.0.0.1:${server.address().port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
    rest.close();
  });
  return at;
}

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
  const at = served(store);
  let modules;
  before(async () => {
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

  for (const compatibilityFlags of [[], ['nodejs_compat']])
    for (const where of ['memory', 'HTTP'])
      test(`counts right in ${where} ${compatibilityFlags}`, async () => {
        const bindings = { ...at, name: fresh(), ...(where === 'memory' && { url: '' }) };
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

const RUNTIMES = { bun: ['bun'], deno: ['deno', 'run', '--allow-all', '--node-modules-dir=manual'] };

onRedis('another runtime', (store) => {
  const at = served(store);

  for (const [runtime, [command, ...words]] of Object.entries(RUNTIMES)) {
    /** Runs a program to its end: what it printed, and how it ended. */
    const runs = async (body) => {
      const text = `import { connect, http } from 'fencelock-wasm';\nconst at = ${JSON.stringify(at)};\n${body}`;
      const child = spawn(resolve('bundlers', 'node_modules', '.bin', command), [...words, program(`${runtime}.js`, text)], { cwd: FOLDER });
      let [out, err] = ['', ''];
      child.stdout.on('data', (data) => (out += data));
      child.stderr.on('data', (data) => (err += data));
      const [code] = await once(child, 'close');
      return [out, err, code];
    };

    test(`${runtime} takes locks in memory and over HTTP, waits for one, and ends`, async () => {
      const body = `
        for (const store of ['memory:', http(at)]) {
          const client = await connect(store);
          const guard = await client.lock('x').acquire();
          const next = client.lock('x').acquire({ wait: 20_000 });
          console.log(guard.isHeld, await guard.release());
          await (await next).release();
          await client.close();
        }`;
      assert.deepEqual(await runs(body), ['true released\n'.repeat(2), '', 0]);
    });

    test(`${runtime} gives back what it holds when it ends`, async () => {
      const name = fresh();
      assert.deepEqual(await runs(`await (await connect(http(at))).lock('${name}', { ttl: 600_000 }).acquire();`), ['', '', 0]);
      const client = await connect(http(at));
      await (await client.lock(name).acquire({ wait: 20_000 })).release();
      await client.close();
    });
  }
});

/** An app of Next.js with a route on the edge and one on Node.js. */
const ROUTE = (runtime) => `
  import { connect, http } from 'fencelock-wasm';
  export const runtime = '${runtime}';
  export const dynamic = 'force-dynamic';
  export async function GET(request) {
    const url = new URL(request.url).searchParams.get('url');
    const client = await connect(url ? http({ url, token: '${TOKEN}' }) : 'memory:');
    const held = await client.lock('x').using((guard) => guard.isHeld);
    await client.close();
    return new Response(String(held));
  }`;

/** The packages that Node.js loads by itself. */
const EXTERNAL = { turbopack: [], webpack: ['fencelock-wasm'] };

onRedis('Next.js', (store) => {
  const at = served(store);
  const app = resolve('bundlers', 'next');
  const next = (...words) => [resolve('bundlers', 'node_modules', '.bin', 'next'), words, { cwd: app, encoding: 'utf8', env: { ...process.env, NEXT_TELEMETRY_DISABLED: '1' } }];

  for (const bundler of Object.keys(EXTERNAL))
    test(`takes locks on the edge and on Node.js, by ${bundler}`, async () => {
      for (const [name, text] of Object.entries({
        'app/layout.js': 'export default ({ children }) => <html><body>{children}</body></html>;',
        'app/edge/route.js': ROUTE('edge'),
        'app/node/route.js': ROUTE('nodejs'),
        'next.config.mjs': `const root = ${JSON.stringify(resolve('.'))};
          export default { turbopack: { root }, outputFileTracingRoot: root, serverExternalPackages: ${JSON.stringify(EXTERNAL[bundler])} };`,
      })) {
        mkdirSync(dirname(join(app, name)), { recursive: true });
        writeFileSync(join(app, name), text);
      }
      const built = spawnSync(...next('build', `--${bundler}`));
      assert.equal(built.status, 0, built.stdout + built.stderr);
      const server = spawn(...next('start', '--port', '0'));
      try {
        const place = await new Promise((told) => server.stdout.on('data', (data) => /http:\/\/localhost:\d+/.test(data) && told(/http:\/\/localhost:\d+/.exec(data)[0])));
        for (const runtime of ['edge', 'node'])
          for (const url of ['', at.url]) {
            const answer = await fetch(`${place}/${runtime}?url=${encodeURIComponent(url)}`);
            assert.equal(await answer.text(), 'true');
          }
      } finally {
        server.kill();
        await once(server, 'close');
      }
    });
});
