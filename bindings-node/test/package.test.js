// The package as Node has it: what is its own beside the one for WebAssembly. The tools come with its sources.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import * as imported from 'fencelock';
import { SOURCES, tool } from './support/examples.js';

const TOOLS = join(SOURCES, 'node_modules', '.bin');

describe('types', () => {
  test('are right for every way to resolve them (attw)', () => {
    tool(join(TOOLS, 'attw'), ['fencelock.tgz', '--format', 'ascii', '--no-emoji']);
  });

  test('and the package are as publint wants them', () => {
    tool(join(TOOLS, 'publint'), ['node_modules/fencelock', '--strict']);
  });

  test('of options are in step with the table', () => {
    tool(process.execPath, [join(SOURCES, 'scripts', 'options.mjs'), '--check']);
  });
});

describe('both module systems', () => {
  test('have the same classes', () => {
    const required = createRequire(import.meta.url)('fencelock');
    const names = ['FencelockError', 'LockLostError', 'LockTimeoutError', 'connect'];
    assert.deepEqual(Object.keys(imported).sort(), names);
    for (const name of names) assert.equal(required[name], imported[name]);
  });
});

describe('without its native part', () => {
  // Away from the folder whose packages would be found.
  const away = mkdtempSync(join(tmpdir(), 'fencelock-'));
  const folder = join(away, 'node_modules', 'fencelock');
  before(() => {
    mkdirSync(folder, { recursive: true });
    tool('tar', ['-xzf', 'fencelock.tgz', '-C', folder, '--strip-components=1']);
  });
  after(() => rmSync(away, { recursive: true }));

  /** The output of a program that connects on a platform of this name. */
  function told(system) {
    const script = `
      Object.defineProperty(process, 'platform', { value: ${JSON.stringify(system)} });
      const { connect, FencelockError } = require(${JSON.stringify(folder)});
      console.log('imported');
      connect('memory:').catch((error) => console.log(error instanceof FencelockError, error.code, error.message));`;
    const { stdout } = tool(process.execPath, ['--eval', script], { cwd: away });
    const [imported, said] = stdout.trim().split('\n');
    assert.equal(imported, 'imported');
    return said;
  }

  test('an import succeeds, and connect names the package that is missing', () => {
    const [part] = Object.keys(createRequire(import.meta.url)('fencelock/package.json').optionalDependencies);
    const platform = part.replace('fencelock-', '');
    const said = told(process.platform);
    assert.match(said, new RegExp(`^true unsupported fencelock has no native part here, on ${platform}. The package ${part} is not installed`));
    for (const word of [`There are packages for ${platform}.`, '`external`', '`serverExternalPackages`']) assert.ok(said.includes(word), said);
  });

  test('npm installs it on a system that has none', () => {
    writeFileSync(join(away, 'package.json'), '{ "private": true }');
    const words = ['install', '--offline', '--no-audit', '--no-fund', '--os=sunos', '--cpu=mips', resolve('fencelock.tgz')];
    tool('npm', words, { cwd: away });
    assert.deepEqual(Object.keys(JSON.parse(readFileSync(join(away, 'package.json'), 'utf8')).dependencies), ['fencelock']);
  });

  test('connect says so where there is none', () => {
    assert.match(told('sunos'), new RegExp(`^true unsupported .* on sunos-${process.arch}. There is none for this platform; fencelock-wasm`));
  });
});
