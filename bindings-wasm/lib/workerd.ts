/// <reference lib="esnext.disposable" preserve="true" />
// Cloudflare Workers compile nothing at run time: what they import is compiled when they are deployed.
import module from './core_bg.wasm';
import { provide } from './native.js';

provide(module);

export * from './index.js';
