import type { Connection } from './connection.js';
import { here } from './environment.js';
import { warn } from './platform.js';

/** The data by which a guard that was collected is given back. */
export interface Remains {
  readonly connection: Connection;
  readonly number: number;
  readonly name: string;
  /** Whether its loss was told: then nobody forgot it. */
  lost: boolean;
}

const registry = new FinalizationRegistry<Remains>(({ connection, number, name, lost }) => {
  here().look((door) => door.dropGuard(connection.number, number), undefined);
  if (lost) return;
  const message =
    `a guard of the lock "${name}" was garbage-collected before it was released; it is released now. ` +
    'Release guards, or take them with `await using` or `lock.using()`';
  warn(message, 'FENCELOCK_FORGOTTEN');
});

/**
 * Guards that the program has used. A guard, its signal and a listener may hold only each other, so without this set a collection would
 * end a hold in use. Such a hold ends by its release or loss, or with the process.
 */
const used = new Set<{ stillHeld(): boolean }>();
/** At this size the set lets go of guards that were lost without being told. */
let full = 1_000;

/** Gives the guard back, with a warning, should it be collected before it was used. */
export function mind(guard: object, remains: Remains): void {
  registry.register(guard, remains, guard);
}

/** Keeps a guard that the program has used. */
export function keep(guard: { stillHeld(): boolean }): void {
  used.add(guard);
  if (used.size < full) return;
  for (const each of used) if (!each.stillHeld()) used.delete(each);
  full = Math.max(1_000, used.size * 2);
}

/** The loss of a guard was told: it may be collected. */
export function letGo(guard: { stillHeld(): boolean }): void {
  used.delete(guard);
}

/** The guard is given back. */
export function unmind(guard: { stillHeld(): boolean }): void {
  registry.unregister(guard);
  used.delete(guard);
}
