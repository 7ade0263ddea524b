/** A word of a reply. */
export type Word = string | number | null | readonly Word[];

/** How a command ended: with its reply, or with the server's own words for what it did not do (`WRONGTYPE Operation…`). */
export type Ended = { readonly result: Word } | { readonly error: string };

/**
 * The server's refusal in an error of a client, if it is one: its text begins with a code in capitals. A failure on the way to
 * the server has a text in sentences, or a `code` of the system's. Names of classes do not survive every bundler.
 */
export function refusal(error: unknown): string | undefined {
  const { message, code } = (error ?? {}) as { message?: unknown; code?: unknown };
  return code === undefined && typeof message === 'string' && /^[A-Z][A-Z0-9_]+( |$)/.test(message) ? message : undefined;
}

/**
 * A way to a Redis server: a client that is there, HTTP, or your own.
 *
 * @example
 * ```ts
 * const client = await connect(ioredis(new Redis()), { ttl: 10_000 });
 * ```
 */
export interface Transport {
  /** The server as errors name it. No password stands in it. */
  readonly name: string;

  /**
   * Sends commands, which the server carries out in this order, each by itself; answers one end for each. It rejects if it is
   * not known what the server did. It never sends anything twice. It is called once for all that a turn asks for.
   */
  send(commands: readonly (readonly string[])[]): Promise<readonly Ended[]>;

  /**
   * Listens to a channel: `told` is called with each message, `gap` when some may have been missed. Answers what ends that. A
   * transport without it looks whether it is its turn, four times in a second.
   */
  subscribe?(channel: string, told: (message: string) => void, gap: () => void): Promise<() => void>;

  /** Ends what the transport itself has opened. */
  close?(): void;

  /** The same with connections of its own: every client has one, and closes it. */
  another?(): Transport;
}
