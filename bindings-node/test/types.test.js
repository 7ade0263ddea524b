// The types as users' compilers see them.
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { compile, TYPES } from './support/examples.js';
import { LANGUAGE } from './support/stores.js';

describe('types', () => {
  for (const [system, type, module] of [['ESM', 'module', 'node16'], ['CJS', 'commonjs', 'node16'], ['bundlers', 'module', 'esnext']]) {
    const skip = system === 'CJS' && LANGUAGE === 'wasm' && 'in WebAssembly there are ES modules only';
    for (const lib of [['es2022'], ['esnext']]) {
      test(`compile and are strict in ${system} with ${lib}`, { skip }, () => {
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
          typeRoots: [TYPES],
          strict: true,
          exactOptionalPropertyTypes: true,
          skipLibCheck: false,
          noEmit: true,
        };
        writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['use.ts'] }));
        compile(folder);
      });
    }
  }
});
