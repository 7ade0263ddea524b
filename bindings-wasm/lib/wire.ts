import type { Ended, Transport } from './transport.js';

/** A transport as the core sees it: JSON goes out and comes back. */
export class Wire {
  readonly #transport: Transport;
  #unsubscribe: (() => void) | undefined;
  #closed = false;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  name(): string {
    return this.#transport.name;
  }

  async send(commands: string): Promise<string> {
    const ends: readonly Ended[] = await this.#transport.send(JSON.parse(commands) as string[][]);
    return JSON.stringify(ends);
  }

  async subscribe(channel: string, told: (message: string | null) => void): Promise<boolean> {
    const transport = this.#transport;
    if (!transport.subscribe) return false;
    const heard = (message: string | null): void => {
      if (!this.#closed) told(message);
    };
    const unsubscribe = await transport.subscribe(channel, heard, () => heard(null));
    if (this.#closed) unsubscribe();
    else this.#unsubscribe = unsubscribe;
    return true;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#unsubscribe?.();
    this.#transport.close?.();
  }
}
