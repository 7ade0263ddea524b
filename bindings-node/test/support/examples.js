// The code of documentation: taken out of it, compiled as it stands, and run.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runFile } from './program.js';

/** The package's own folder. */
export const SOURCES = process.env.FENCELOCK_SOURCES;

/** Where the types of what is not ours lie. */
export const TYPES = join(SOURCES, 'node_modules', '@types');

/** The pages of the documentation whose code is run: those for programs of this package are `of` its kind. */
export function pages(of) {
  const docs = join(SOURCES, '..', 'docs');
  const found = ['tutorial', 'how-to'].flatMap((folder) => readdirSync(join(docs, folder)).map((name) => join(docs, folder, name)));
  return found.filter((page) => page.endsWith('.md') && page.endsWith('webassembly.md') === (of === 'wasm'));
}

/** Runs a program that has to end well. */
export function tool(program, words, options) {
  const { status, stdout, stderr } = spawnSync(program, words, { encoding: 'utf8', ...options });
  assert.equal(status, 0, `${stdout}${stderr}`);
  return { stdout, stderr };
}

/** Compiles the project in a folder. */
export const compile = (folder) => tool(join(SOURCES, 'node_modules', '.bin', 'tsc'), ['--project', folder]);

/** The files of TypeScript in a folder. */
export const typed = (folder) => readdirSync(folder).filter((name) => name.endsWith('.ts')).map((name) => join(folder, name));

/** The blocks of TypeScript in a file; in a comment every line begins with a star. */
function blocks(file) {
  const found = [...readFileSync(file, 'utf8').matchAll(/^( *\* )?```ts\n([^]*?)^( *\* )?```$/gm)];
  return found.map(([, star, code]) => (star ? code.replaceAll(/^ *\* ?/gm, '') : code));
}

/** Runs every block of the files, `least` at least: `around` stands before them all, and each becomes what `adapt` says. */
export async function runExamples({ files, least, around, adapt, lib = [], skipLibCheck = false }) {
  const all = files.flatMap(blocks);
  assert.ok(all.length >= least, `there are only ${all.length}`);
  const bodies = all.map((code, number) => `{\n${adapt(code.replaceAll(/^import .*\n/gm, ''), number)}\n  console.log(${number});\n}`);
  const folder = 'examples';
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  writeFileSync(join(folder, 'all.ts'), `${around}\n${bodies.join('\n')}\n`);
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  const compilerOptions = {
    module: 'node16',
    target: 'es2022',
    lib: ['es2023', 'esnext.disposable', ...lib],
    types: ['node'],
    typeRoots: [TYPES],
    strict: true,
    skipLibCheck,
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['all.ts'] }));
  compile(folder);
  // Beside this process, which may be the server. A block may leave a guard to the end of its client, which is a loss.
  const env = { LOCKS_URL: 'memory:', NODE_OPTIONS: '--disable-warning=FENCELOCK_LOST' };
  const script = await runFile(join(folder, 'all.js'), { env });
  const ended = script.out.split('\n').filter((line) => /^\d+$/.test(line)); // the others are the blocks' own
  assert.deepEqual([ended, script.err], [all.map((_, number) => `${number}`), '']);
}
