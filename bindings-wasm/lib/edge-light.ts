/// <reference lib="esnext.disposable" preserve="true" />
// Edge functions of Next.js and Vercel compile nothing at run time: with `?module` their bundlers hand over what they have compiled.
import module from './core_bg.wasm?module';
import { provide } from './native.js';

provide(module);

export * from './index.js';
