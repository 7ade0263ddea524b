import { ask, here } from './environment.js';

const forgotten = new FinalizationRegistry<number>((number) => here().look((door) => door.dropClient(number), undefined));

/**
 * A client of the core. Whatever stands on it (locks, guards, operations under way) keeps it; when all are gone, so is the
 * client.
 */
export class Connection {
  constructor(readonly number: number) {
    forgotten.register(this, number);
  }

  /** Sets an operation of the facade off and waits for its end. */
  perform<T>(operation: object, signal?: AbortSignal | null): Promise<T> {
    return this.performText(JSON.stringify(operation), signal);
  }

  /** The same for an operation that is JSON already. */
  performText<T>(operation: string, signal?: AbortSignal | null): Promise<T> {
    return here().perform((door) => door.submit(this.number, operation), this, signal);
  }

  /** The guarantees, options and load of the client, known without asking the store. */
  about(): { guarantees: unknown; options: Record<string, unknown>; load: unknown } {
    return JSON.parse(ask((door) => door.about(this.number))) as ReturnType<Connection['about']>;
  }
}
