/** Cloudflare Workers have these modules by name, without what locks need of them. */
const isWorkers = globalThis.navigator?.userAgent === 'Cloudflare-Workers';

/** Gives one of Node's own modules; nothing where there are none. */
export const builtin: NodeJS.Process['getBuiltinModule'] | undefined = isWorkers ? undefined : globalThis.process?.getBuiltinModule;
