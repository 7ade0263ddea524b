import { ask, here, type Begin } from './environment.js';

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
    return here().perform(this.asks(operation), this, signal);
  }

  /** Asks for an operation of the facade. @internal */
  asks(operation: object): Begin {
    const text = JSON.stringify(operation);
    return (door) => door.submit(this.number, text);
  }

  /** The guarantees, options and load of the client, known without asking the store. */
  about(): { guarantees: unknown; options: Record<string, unknown>; load: unknown } {
    return JSON.parse(ask((door) => door.about(this.number))) as ReturnType<Connection['about']>;
  }
}
