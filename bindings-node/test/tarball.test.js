// The package as it leaves the house, read from its tarball.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';
import { SOURCES } from './support/examples.js';

const PROJECT = dirname(SOURCES);

function tar(...words) {
  const { status, stdout, stderr } = spawnSync('tar', words, { maxBuffer: 2 ** 26 });
  assert.equal(status, 0, stderr.toString());
  return stdout;
}

/** A file of the package. */
const read = (name) => tar('-xzOf', 'fencelock.tgz', `package/${name}`);

const names = tar('-tzf', 'fencelock.tgz').toString().trim().split('\n').map((name) => name.replace('package/', ''));
const manifest = JSON.parse(read('package.json'));

test('the tarball has both licences as the project has them', () => {
  assert.equal(manifest.license, 'MIT OR Apache-2.0');
  for (const licence of ['LICENSE-APACHE', 'LICENSE-MIT']) {
    assert.deepEqual(read(licence), readFileSync(join(PROJECT, licence)), licence);
  }
});

test('its manifest says where the project is', () => {
  const project = /^repository = "(.+)"/m.exec(readFileSync(join(PROJECT, 'Cargo.toml'), 'utf8'))[1];
  const { repository, homepage, bugs, changelog } = manifest;
  assert.deepEqual(repository, { type: 'git', url: `git+${project}.git`, directory: basename(SOURCES) });
  assert.equal(homepage, `${project}/tree/main/${basename(SOURCES)}#readme`);
  assert.deepEqual([bugs, changelog], [`${project}/issues`, `${project}/blob/main/CHANGELOG.md`]);
});

test('its manifest names the platforms it has native code for, and only those', () => {
  const platforms = names.flatMap((name) => /\.(\w+)-(\w+)-gnu\.node$/.exec(name)?.slice(1) ?? []);
  const { os = [], cpu = [], libc = [] } = manifest;
  assert.deepEqual([...os, ...cpu], platforms);
  assert.deepEqual(libc, platforms.length ? ['glibc'] : []);
  assert.equal(names.some((name) => name.endsWith('.node')), platforms.length > 0);
});

test('it has what is loaded, and what tells of it, and nothing else', () => {
  const others = names.filter((name) => !/^dist\/[\w.-]+\.(js|mjs|d\.ts|d\.mts|wasm|node)$/.test(name));
  assert.deepEqual(others.sort(), ['LICENSE-APACHE', 'LICENSE-MIT', 'README.md', 'package.json']);
  assert.deepEqual(names.filter((name) => /test|actor|bench/.test(name)), []);
});
