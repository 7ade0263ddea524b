import type * as Binding from './binding.js';
import { FencelockError } from './error.js';

let binding: typeof Binding | undefined;

/** The native part, loaded when it is first asked for: a program that only imports this package runs everywhere. */
function native(): typeof Binding {
  try {
    return (binding ??= require('./binding.js') as typeof Binding);
  } catch (cause) {
    throw absent(cause);
  }
}

/** The way to the core, which calls when there is something to drain. */
export type Door = Binding.Door;

export const open = (wake: () => void): Door => new (native().Door)(wake);
export const options = (): string => native().options();

/** This platform, as the packages with native code are called. */
function platform(): string {
  const { report } = process;
  // Otherwise a report asks for the names of all addresses this process speaks to.
  if (report) (report as { excludeNetwork?: boolean }).excludeNetwork = true;
  const { header } = (report?.getReport() ?? {}) as { header?: { glibcVersionRuntime?: string } };
  const abi = { linux: header?.glibcVersionRuntime ? '-gnu' : '-musl', win32: '-msvc' }[process.platform as string];
  return `${process.platform}-${process.arch}${abi ?? ''}`;
}

/** The system's reason for not loading a package that is installed; undefined if that is not the cause. */
function refusal(cause: unknown): string | undefined {
  for (let one = cause; one instanceof Error; one = one.cause) {
    if ((one as NodeJS.ErrnoException).code === 'ERR_DLOPEN_FAILED') return one.message.trim();
  }
  return undefined;
}

/** The error for a missing native part, without which nothing connects. */
function absent(cause: unknown): FencelockError {
  const { name, optionalDependencies = {} } = require('../package.json') as { name: string; optionalDependencies?: object };
  const packages = Object.keys(optionalDependencies);
  const here = platform();
  const refused = refusal(cause);
  const why = refused
    ? `The system refuses to load it: ${refused}.`
    : packages.includes(`${name}-${here}`)
      ? `The package ${name}-${here} is not installed: install with optional dependencies, on the platform that runs the program.`
      : `There is none for this platform; ${name}-wasm has \`memory:\` and Redis on every platform.`;
  const message =
    `${name} has no native part here, on ${here}. ${why} There are packages for ` +
    `${packages.map((one) => one.replace(`${name}-`, '')).join(', ')}. A bundler has to leave ${name} outside: \`external\` ` +
    `(esbuild, Vite), \`externals\` (webpack), \`serverExternalPackages\` (Next.js)`;
  return new FencelockError({ code: 'unsupported', message, retryable: false, fields: { platform: here } }, { cause });
}
