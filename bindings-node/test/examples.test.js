// The code of the README and of the documentation compiles and runs as it stands; the shop sells what it has.
import assert from 'node:assert/strict';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { compile, pages, runExamples, SOURCES, tool, typed, TYPES } from './support/examples.js';
import { onRedis } from './support/stores.js';

/** What the examples take for granted. */
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

onRedis('the shop', (store) => {
  for (const type of ['module', 'commonjs']) {
    test(`oversells without a lock, and sells what it has with one (${type})`, () => {
      const folder = `inventory-${type}`;
      rmSync(folder, { recursive: true, force: true });
      cpSync(join(SOURCES, '..', 'examples', 'inventory', 'node'), folder, { recursive: true });
      const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...manifest, type }));
      const config = JSON.parse(readFileSync(join(folder, 'tsconfig.json'), 'utf8'));
      config.compilerOptions.typeRoots = [TYPES];
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
