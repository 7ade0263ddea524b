// The types as users' compilers see them. The tools come with the package's sources.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';

const SOURCES = process.env.FENCELOCK_SOURCES;
const TOOLS = join(SOURCES, 'node_modules', '.bin');

function tool(name, ...words) {
  const { status, stdout, stderr } = spawnSync(join(TOOLS, name), words, { encoding: 'utf8' });
  assert.equal(status, 0, `${stdout}${stderr}`);
  return stdout;
}

describe('types', () => {
  test('are right for every way to resolve them (attw)', () => {
    tool('attw', 'fencelock.tgz', '--format', 'ascii', '--no-emoji');
  });

  test('and the package are as publint wants them', () => {
    tool('publint', 'node_modules/fencelock', '--strict');
  });

  for (const [system, type, module] of [['ESM', 'module', 'node16'], ['CJS', 'commonjs', 'node16'], ['bundlers', 'module', 'esnext']]) {
    for (const lib of [['es2022'], ['esnext']]) {
      test(`compile and are strict in ${system} with ${lib}`, () => {
        const folder = join('types', `${system}-${lib}`);
        rmSync(folder, { recursive: true, force: true });
        mkdirSync(folder, { recursive: true });
        cpSync(join('test', 'types', 'use.ts'), join(folder, 'use.ts'));
        writeFileSync(join(folder, 'package.json'), JSON.stringify({ type }));
        const compilerOptions = {
          module,
          moduleResolution: module === 'esnext' ? 'bundler' : 'node16',
          target: 'es2022',
          lib,
          types: ['node'],
          typeRoots: [join(SOURCES, 'node_modules', '@types')],
          strict: true,
          exactOptionalPropertyTypes: true,
          skipLibCheck: false,
          noEmit: true,
        };
        writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['use.ts'] }));
        tool('tsc', '--project', folder);
      });
    }
  }

  test('of options are in step with the table', () => {
    const { status, stderr } = spawnSync(process.execPath, [join(SOURCES, 'scripts', 'options.mjs'), '--check'], { encoding: 'utf8' });
    assert.equal(status, 0, stderr);
  });
});
