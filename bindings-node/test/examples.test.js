// The code of the README and of the documentation compiles and runs as they stand; its programs show what they are there to show.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { compile, pages, runExamples, SOURCES, tool, typed, TYPES } from './support/examples.js';
import { runFile } from './support/program.js';
import { onRedis } from './support/stores.js';

/** The declarations that the examples take for granted. */
const AROUND = `
import { connect, FencelockError, LockTimeoutError } from 'fencelock';
const [order, source] = [42, 'data:text/plain,pages'];
const does = async (..._: unknown[]): Promise<void> => {};
const [charge, write, cleanUp, schedule] = [does, does, does, does];
`;

onRedis('the documentation', (store) => {
  test('the examples run', () => {
    const documents = [join(SOURCES, 'README.md'), join(SOURCES, '..', 'README.md'), ...pages('node')];
    const adapt = (code, number) => {
      const here = code.replaceAll('redis://127.0.0.1', store.url);
      return `  await using client = await connect('memory:example-${number}');\n  {\n${here}\n  }`;
    };
    return runExamples({ files: [...documents, ...typed(join(SOURCES, 'lib'))], least: 18, around: AROUND, adapt });
  });
});

/** Compiles a program of the examples, and answers where its JavaScript lies. */
function built(example, type) {
  const folder = `${example}-${type}`;
  rmSync(folder, { recursive: true, force: true });
  cpSync(join(SOURCES, '..', 'examples', example, 'node'), folder, { recursive: true });
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...manifest, type }));
  const config = JSON.parse(readFileSync(join(folder, 'tsconfig.json'), 'utf8'));
  config.compilerOptions.typeRoots = [TYPES];
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
  compile(folder);
  return join(folder, 'dist', `${example}.js`);
}

onRedis('the shop', (store) => {
  for (const type of ['module', 'commonjs']) {
    test(`oversells without a lock, and sells what it has with one (${type})`, () => {
      const { stdout } = tool(process.execPath, [built('inventory', type), store.url]);
      const over = (way) => Number(stdout.match(new RegExp(`^${way} +sold +\\d+, oversold +(\\d+)`, 'm'))[1]);
      assert.ok(over('no lock') > 0, stdout);
      assert.deepEqual([over('lock'), over('script')], [0, 0], stdout);
      assert.match(stdout, /^lock +sold +50,/m);
    });
  }
});

test('the balance is exact by version and under a lock only', () => {
  const program = built('balance', 'module');
  for (const how of ['version', 'lock']) {
    const { stdout } = tool(process.execPath, [program, '--how', how, '--balance', '31', '--times', '3']);
    assert.equal(stdout, `${how}: paid out 30, refused 14, left 1 of 31, exact\n`);
  }
  const words = [program, '--how', 'none', '--balance', '31', '--workers', '4'];
  const { status, stdout } = spawnSync(process.execPath, words, { encoding: 'utf8' });
  assert.equal(status, 1, stdout);
  assert.ok(Number(stdout.match(/^none: paid out (\d+), .* not exact$/m)[1]) > 31, stdout);
});

onRedis('the scheduled job', (store) => {
  test('of two nodes one runs in each period', async () => {
    const program = built('scheduled-job', 'module');
    const runs = join('scheduled-job-module', 'runs.txt');
    const words = ['--url', store.url, '--period', '1', '--for', '1.5', '--output', runs];
    const nodes = ['one', 'another'].map((name) => runFile(program, { words: ['--name', name, ...words], most: 60_000 }));
    for (const { code, err } of await Promise.all(nodes)) assert.equal(code, 0, err);
    const instants = readFileSync(runs, 'utf8').trim().split('\n').map((line) => line.split(' ')[0]);
    assert.equal(new Set(instants).size, instants.length, `${instants}`);
  });
});
