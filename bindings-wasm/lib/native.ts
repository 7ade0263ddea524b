import { builtin } from './builtin.js';
import init, { Door as Core, options, turn } from './core.js';
import { FencelockError } from './error.js';
import { Host } from './host.js';
import { hold } from './pulse.js';
import type { Wire } from './wire.js';

/** The compiled core: a `WebAssembly.Module`, its bytes, a `Response` or an address. Not every program has those types. */
type Module = object | string;

let given: Module | undefined;
let loaded: Promise<unknown> | undefined;

/** Has the core loaded from this, unless a client names something else. */
export function provide(module: Module): void {
  given = module;
}

/** The file beside this one: bytes to a server, an address to a browser. */
function beside(): Module {
  const place = new URL('./core_bg.wasm', import.meta.url);
  const files = builtin?.('node:fs');
  return files && place.protocol === 'file:' ? files.readFileSync(place) : place;
}

/** Loads the core, once for all clients. Nothing else may be asked before. */
export async function load(module: Module | undefined): Promise<void> {
  loaded ??= (async () => init({ module_or_path: (module ?? given ?? beside()) as WebAssembly.Module }))();
  try {
    await loaded;
  } catch (cause) {
    loaded = undefined;
    const message =
      `the file core_bg.wasm of fencelock-wasm could not be loaded: ${String(cause)}. Where a bundler leaves it behind, or code may ` +
      'not be compiled, pass it: `connect(store, { module })`, with what `fencelock-wasm/core.wasm` resolves to';
    throw new FencelockError({ code: 'unsupported', message, retryable: false, fields: { argument: 'module' } }, { cause });
  }
}

export { options };

/**
 * The way to the core. What the core does not catch itself, a panic, is a defect that leaves it in no state to go on: from
 * then on nothing is held, and whatever is asked for fails.
 */
export class Door {
  readonly #core: Core;
  readonly #wake: () => void;
  #defect: unknown;

  constructor(wake: () => void) {
    this.#wake = () => void Promise.resolve().then(wake);
    const guarded = (call: () => void): void => this.guarded(call);
    this.#core = new Core(new Host(() => guarded(turn), guarded), this.#wake);
  }

  /** Calls the core unless it is broken, and sees to what it throws: nobody else could. */
  guarded(call: () => void): void {
    try {
      if (!this.#defect) call();
    } catch (defect) {
      this.#fail(defect);
    }
  }

  /** Keeps a server's process alive from now on, or lets it go. */
  hold(alive: boolean): void {
    hold(alive);
  }

  connect(url: string, wire: Wire | undefined, given: string, app: string): number {
    return this.#ask(() => this.#core.connect(url, wire, given, app));
  }

  submit(client: number, operation: string): number {
    return this.#ask(() => this.#core.submit(client, operation));
  }

  release(client: number, guard: number): number {
    return this.#ask(() => this.#core.release(client, guard));
  }

  lost(client: number, guard: number): number {
    return this.#ask(() => this.#core.lost(client, guard));
  }

  setOff(): void {
    this.#tell(() => this.#core.setOff(), undefined);
  }

  news(client: number): number {
    return this.#ask(() => this.#core.news(client));
  }

  listen(client: number, all: boolean | null): void {
    this.#tell(() => this.#core.listen(client, all), undefined);
  }

  forget(operation: number): void {
    this.#tell(() => this.#core.forget(operation), undefined);
  }

  drain(): string {
    return this.#ask(() => this.#core.drain());
  }

  isHeld(client: number, guard: number): boolean {
    return this.#tell(() => this.#core.isHeld(client, guard), false);
  }

  remaining(client: number, guard: number): number {
    return this.#tell(() => this.#core.remaining(client, guard), 0);
  }

  check(client: number, guard: number): string | undefined {
    return this.#ask(() => this.#core.check(client, guard));
  }

  dropGuard(client: number, guard: number): void {
    this.#tell(() => this.#core.dropGuard(client, guard), undefined);
  }

  dropClient(client: number): void {
    this.#tell(() => this.#core.dropClient(client), undefined);
  }

  openScope(client: number): number {
    return this.#ask(() => this.#core.openScope(client));
  }

  closeScope(client: number, scope: number): void {
    this.#tell(() => this.#core.closeScope(client, scope), undefined);
  }

  about(client: number): string {
    return this.#ask(() => this.#core.about(client));
  }

  /** Asks, or throws what the core is broken by. */
  #ask<T>(ask: () => T): T {
    if (this.#defect) throw this.#defect;
    try {
      return ask();
    } catch (defect) {
      this.#fail(defect);
      throw defect;
    }
  }

  /** The same for what has an answer even then. */
  #tell<T>(ask: () => T, broken: T): T {
    try {
      return this.#ask(ask);
    } catch {
      return broken;
    }
  }

  #fail(defect: unknown): void {
    this.#defect ??= defect ?? new Error('unknown');
    this.#wake();
  }
}

/** Opens one. */
export const open = (wake: () => void): Door => new Door(wake);
