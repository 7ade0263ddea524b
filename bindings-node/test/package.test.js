// The package as Node has it: what is its own beside the one for WebAssembly. The tools come with its sources.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, test } from 'node:test';
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
