/**
 * Cloudflare Workers have these modules by name, without what locks need of them. Edge functions of Next.js and Vercel have a `process`
 * that throws for whatever is called of it.
 */
const isEdge = globalThis.navigator?.userAgent === 'Cloudflare-Workers' || 'EdgeRuntime' in globalThis;

/** Gives one of Node's own modules; nothing where there are none. */
export const builtin: NodeJS.Process['getBuiltinModule'] | undefined = isEdge ? undefined : globalThis.process?.getBuiltinModule;
