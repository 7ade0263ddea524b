// The code of the README and of the documentation compiles and runs as it stands, over memory; the shop sells what it has.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { onRedis } from './support/stores.js';

const SOURCES = process.env.FENCELOCK_SOURCES;

/** What the examples take for granted. */
const AROUND = `
import { connect, FencelockError } from 'fencelock';
const [order, source] = [42, 'data:text/plain,pages'];
const does = async (..._: unknown[]): Promise<void> => {};
const [charge, write, cleanUp, schedule] = [does, does, does, does];
`;

function tool(program, words, options) {
  const { status, stdout, stderr } = spawnSync(program, words, { encoding: 'utf8', ...options });
  assert.equal(status, 0, `${stdout}${stderr}`);
  return { stdout, stderr };
}

const compile = (folder) => tool(join(SOURCES, 'node_modules', '.bin', 'tsc'), ['--project', folder]);

/** The blocks of TypeScript in a text; in a comment every line begins with a star. */
function blocks(text) {
  const found = [...text.matchAll(/^( *\* )?```ts\n([^]*?)^( *\* )?```$/gm)];
  return found.map(([, star, code]) => (star ? code.replaceAll(/^ *\* ?/gm, '') : code));
}

test('the examples run', () => {
  const sources = readdirSync(join(SOURCES, 'lib')).filter((name) => name.endsWith('.ts'));
  const texts = [join(SOURCES, 'README.md'), ...sources.map((name) => join(SOURCES, 'lib', name))];
  const all = texts.flatMap((file) => blocks(readFileSync(file, 'utf8')));
  assert.ok(all.length >= 12, `there are only ${all.length}`);
  const bodies = all.map((code, number) => {
    const here = code.replaceAll(/^import .*\n/gm, '').replaceAll('redis://127.0.0.1', 'memory:');
    return `{\n  await using client = await connect('memory:example-${number}');\n  {\n${here}\n  }\n  console.log(${number});\n}`;
  });
  const folder = 'examples';
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  writeFileSync(join(folder, 'all.ts'), `${AROUND}\n${bodies.join('\n')}\n`);
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  const typeRoots = [join(SOURCES, 'node_modules', '@types')];
  const compilerOptions = { module: 'node16', target: 'es2022', lib: ['es2023', 'esnext.disposable'], types: ['node'], typeRoots, strict: true };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['all.ts'] }));
  compile(folder);
  const { stdout, stderr } = tool(process.execPath, [join(folder, 'all.js')]);
  assert.deepEqual([stdout.trim().split('\n').map(Number), stderr], [all.map((_, number) => number), '']);
});

onRedis('the shop', (store) => {
  for (const type of ['module', 'commonjs']) {
    test(`oversells without a lock, and sells what it has with one (${type})`, () => {
      const folder = `inventory-${type}`;
      rmSync(folder, { recursive: true, force: true });
      cpSync(join(SOURCES, '..', 'examples', 'inventory', 'node'), folder, { recursive: true });
      const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...manifest, type }));
      const config = JSON.parse(readFileSync(join(folder, 'tsconfig.json'), 'utf8'));
      config.compilerOptions.typeRoots = [join(SOURCES, 'node_modules', '@types')];
      writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
      compile(folder);
      const { stdout } = tool(process.execPath, [join(folder, 'dist', 'inventory.js'), store.url]);
      const over = (way) => Number(stdout.match(new RegExp(`^${way} +sold +\\d+, oversold +(\\d+)`, 'm'))[1]);
      assert.ok(over('no lock') > 0, stdout);
      assert.deepEqual([over('lock'), over('script')], [0, 0], stdout);
      assert.match(stdout, /^lock +sold +50,/m);
    });
  }
});
