// The packages as they leave the house, read from their tarballs.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';
import { SOURCES } from './support/examples.js';

const PROJECT = dirname(SOURCES);

function tar(...words) {
  const { status, stdout, stderr } = spawnSync('tar', words, { maxBuffer: 2 ** 26 });
  assert.equal(status, 0, stderr.toString());
  return stdout;
}

/** A package: its manifest, the names of its files, and a way to read one. */
function opened(tarball) {
  const names = tar('-tzf', tarball).toString().trim().split('\n').map((name) => name.replace('package/', ''));
  const read = (name) => tar('-xzOf', tarball, `package/${name}`);
  return { tarball, names, read, manifest: JSON.parse(read('package.json')) };
}

const root = opened('fencelock.tgz');
const parts = readdirSync('.').filter((name) => /^fencelock-.+\.tgz$/.test(name)).map(opened);

for (const { tarball, read, manifest } of [root, ...parts]) {
  test(`${tarball} has both licences as the project has them`, () => {
    assert.equal(manifest.license, 'MIT OR Apache-2.0');
    for (const licence of ['LICENSE-APACHE', 'LICENSE-MIT']) {
      assert.deepEqual(read(licence), readFileSync(join(PROJECT, licence)), licence);
    }
  });

  test(`the manifest of ${tarball} says where the project is`, () => {
    const project = /^repository = "(.+)"/m.exec(readFileSync(join(PROJECT, 'Cargo.toml'), 'utf8'))[1];
    const { repository, homepage, bugs, changelog = `${project}/blob/main/CHANGELOG.md` } = manifest;
    assert.deepEqual(repository, { type: 'git', url: `git+${project}.git`, directory: basename(SOURCES) });
    assert.equal(homepage, `${project}/tree/main/${basename(SOURCES)}#readme`);
    assert.deepEqual([bugs, changelog], [`${project}/issues`, `${project}/blob/main/CHANGELOG.md`]);
  });
}

test('the package installs everywhere, and brings the part for this platform', () => {
  const { os, cpu, libc, version, optionalDependencies = {} } = root.manifest;
  assert.deepEqual([os, cpu, libc], [undefined, undefined, undefined]);
  assert.deepEqual(optionalDependencies, Object.fromEntries(parts.map(({ manifest }) => [manifest.name, version])));
});

for (const { tarball, names, manifest } of parts) {
  test(`${tarball} has one native part and the platform it is for`, () => {
    const [, os, cpu, abi] = /^fencelock-([a-z0-9]+)-(\w+?)(?:-(\w+))?\.tgz$/.exec(tarball);
    const libc = { gnu: ['glibc'], musl: ['musl'] }[abi];
    assert.deepEqual([manifest.os, manifest.cpu, manifest.libc], [[os], [cpu], libc]);
    assert.deepEqual(names.sort(), ['LICENSE-APACHE', 'LICENSE-MIT', 'README.md', manifest.main, 'package.json']);
  });
}

test('the package has what is loaded, and what tells of it, and nothing else', () => {
  const { names } = root;
  const others = names.filter((name) => !/^dist\/[\w.-]+\.(js|mjs|d\.ts|d\.mts|wasm)$/.test(name));
  assert.deepEqual(others.sort(), ['LICENSE-APACHE', 'LICENSE-MIT', 'README.md', 'package.json']);
  assert.deepEqual(names.filter((name) => /test|actor|bench/.test(name)), []);
});

/** The declarations that users see, without their comments. The package for WebAssembly lists its own only. FENCELOCK_WRITE=1 writes the list anew. */
test('the interface is the one in api.txt, so that a change of it is seen in a diff', () => {
  const shared = ['types', 'options', 'event', 'client', 'lock', 'guard', 'job', 'election', 'version', 'gate', 'scope', 'state'];
  const own = { fencelock: ['connect', 'error', ...shared], 'fencelock-wasm': ['index', 'connect', 'http', 'ioredis', 'node-redis', 'transport'] };
  const text = (name) => root.read(`dist/${name}.d.ts`).toString().replace(/\/\*[^]*?\*\/|^\/\/.*/gm, '').replace(/\n\s*\n/g, '\n');
  const api = own[root.manifest.name].map((name) => `// ${name}\n${text(name).trim()}\n`).join('\n');
  const list = join(SOURCES, 'api.txt');
  if (process.env.FENCELOCK_WRITE) writeFileSync(list, api);
  assert.equal(readFileSync(list, 'utf8'), api);
});
