import { Gathering } from './gathering.js';
import type { Transport } from './transport.js';

/** A transport as the core sees it: JSON goes out and comes back, and nothing is thrown but an error that says why. */
export class Wire {
  readonly #transport: Transport;
  readonly #gathering: Gathering;
  /** Sees to what the core throws when it is told something. */
  readonly #guarded: (call: () => void) => void;
  readonly #ended: (wire: Wire) => void;
  #unsubscribe: (() => void) | undefined;
  #closed = false;

  constructor(transport: Transport, guarded: (call: () => void) => void, ended: (wire: Wire) => void) {
    this.#transport = transport;
    this.#gathering = new Gathering((commands) => transport.send(commands));
    this.#guarded = guarded;
    this.#ended = ended;
  }

  name(): string {
    return String(this.#transport.name);
  }

  async send(commands: string): Promise<string> {
    try {
      return JSON.stringify(await this.#gathering.send(commands));
    } catch (error) {
      throw new Error(reason(error));
    }
  }

  async subscribe(channel: string, told: (message: string | null) => void): Promise<boolean> {
    const transport = this.#transport;
    if (!transport.subscribe) return false;
    const heard = (message: string | null): void => {
      if (!this.#closed) this.#guarded(() => told(message));
    };
    try {
      this.#unsubscribe = await transport.subscribe(channel, heard, () => heard(null));
    } catch (error) {
      throw new Error(reason(error));
    }
    if (this.#closed) this.#end();
    return true;
  }

  get closed(): boolean {
    return this.#closed;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    // What was asked for before still goes out; asked for later, it would open a connection that nobody closes.
    this.#gathering.setOff();
    this.#end();
    this.#ended(this);
  }

  #end(): void {
    for (const end of [this.#unsubscribe, () => this.#transport.close?.()]) {
      try {
        end?.();
      } catch {
        // It is closed as far as it can be.
      }
    }
  }
}

const reason = (error: unknown): string => String((error as Error | null | undefined)?.message ?? error);
