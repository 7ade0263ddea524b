import type { Ended, Transport } from './transport.js';

/**
 * So many characters of commands go out together at most: three bytes each are less than the megabyte that servers over HTTP take.
 * A request that is longer by itself goes alone.
 */
const MOST = 256 * 1024;

interface Request {
  readonly commands: readonly (readonly string[])[];
  readonly told: (ends: readonly Ended[]) => void;
  readonly failed: (error: unknown) => void;
}

/**
 * Sends as one what is asked for in one turn: a request over HTTP costs the same for one lock as for sixty, and a client's
 * pipeline nearly so. What is not known of one is not known of any that went with it.
 */
export class Gathering {
  readonly #send: Transport['send'];
  #asked: Request[] = [];
  #length = 0;

  constructor(send: Transport['send']) {
    this.#send = send;
  }

  /** Sends a JSON list of commands with those of others, in the order they were asked for. */
  send(text: string): Promise<readonly Ended[]> {
    const commands = JSON.parse(text) as string[][];
    return new Promise((told, failed) => {
      if (this.#length + text.length > MOST) this.setOff();
      if (this.#asked.push({ commands, told, failed }) === 1) void Promise.resolve().then(() => this.setOff());
      this.#length += text.length;
    });
  }

  /** Sends at once what waits for the turn to end. */
  setOff(): void {
    const asked = this.#asked;
    [this.#asked, this.#length] = [[], 0];
    if (asked.length > 0) void this.#together(asked);
  }

  async #together(asked: readonly Request[]): Promise<void> {
    try {
      const commands = asked.flatMap(({ commands }) => commands);
      const ends = await this.#send(commands);
      if (ends.length !== commands.length) throw new Error(`${ends.length} replies to ${commands.length} commands`);
      let at = 0;
      for (const { commands, told } of asked) told(ends.slice(at, (at += commands.length)));
    } catch (error) {
      for (const { failed } of asked) failed(error);
    }
  }
}
