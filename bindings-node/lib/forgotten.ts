import type { Connection } from './connection.js';
import { here } from './environment.js';
import { warn } from './platform.js';

/** What is left of a guard that was collected. */
export interface Remains {
  readonly connection: Connection;
  readonly number: number;
  readonly name: string;
}

const registry = new FinalizationRegistry<Remains>(({ connection, number, name }) => {
  here().look((door) => door.dropGuard(connection.number, number), undefined);
  const message =
    `a guard of the lock "${name}" was garbage-collected before it was released; it is released now. ` +
    'Release guards, or take them with `await using` or `lock.using()`';
  warn(message, 'FENCELOCK_FORGOTTEN');
});

/** Gives the guard back, with a warning, should it be collected. */
export function mind(guard: object, remains: Remains): void {
  registry.register(guard, remains, guard);
}

/** The guard is given back. */
export function unmind(guard: object): void {
  registry.unregister(guard);
}
