/** The part of `process` that is used here; browsers have no `process`. */
interface Holder {
  on?(event: string, listener: () => void): unknown;
  [key: symbol]: unknown;
}

/**
 * Has something done when this thread comes to this event of its end. Whoever loads the package several times, as test runners
 * do, has several; one listener serves them all, known by a name of the package's own.
 */
export function whenEnding(event: 'exit' | 'beforeExit', name: string, act: () => void): void {
  const holder = globalThis.process as unknown as Holder | undefined;
  if (!holder) return;
  const key = Symbol.for(name);
  let all = holder[key] as Set<() => void> | undefined;
  if (!all) {
    const everybody = new Set<() => void>();
    holder[key] = all = everybody;
    holder.on?.(event, () => everybody.forEach((act) => act()));
  }
  all.add(act);
}
