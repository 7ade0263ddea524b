import { listening, until } from './listening.js';
import { connecting } from './pulse.js';
import { refusal, type Ended, type Transport, type Word } from './transport.js';

/** The part of a client of the package `redis` that is used here. */
export interface NodeRedis {
  readonly options?: { readonly url?: string; readonly socket?: { readonly host?: string; readonly port?: number; readonly path?: string } };
  duplicate(options?: object): NodeRedis;
  connect(): Promise<unknown>;
  destroy(): void;
  unref?(): void;
  sendCommand(words: readonly string[], options?: object): Promise<unknown>;
  subscribe(channel: string, told: (message: string) => void): Promise<unknown>;
  on(event: string, listener: (...words: any[]) => void): unknown;
}

/**
 * Over the package `redis` (node-redis). It opens connections of its own, with the options of the client it is given, but for
 * those that are not for locks.
 */
export function nodeRedis(client: NodeRedis): Transport {
  /** The connections, each with what is called when it ends. */
  const opened = new Map<NodeRedis, () => void>();
  const closing = new AbortController();
  let commander: Promise<NodeRedis> | undefined;
  const end = (one: NodeRedis): void => {
    const ended = opened.get(one);
    opened.delete(one);
    try {
      if (ended) one.destroy();
    } catch {
      // It has ended by itself.
    }
    ended?.();
  };
  /** It is made anew here, when it is needed: the rests of the client itself would keep the process alive. */
  const open = async (ended: () => void): Promise<NodeRedis> => {
    const stopping = new AbortController();
    const { signal } = stopping;
    const one = client.duplicate({ socket: { ...client.options?.socket, reconnectStrategy: false, signal }, pingInterval: 0 });
    opened.set(one, () => {
      // A connection that is only being made is not ended by the client.
      stopping.abort();
      ended();
    });
    // What goes wrong is told by the commands it goes wrong for, and ends the connection.
    one.on('error', () => end(one));
    // By itself a lock keeps no process alive.
    one.unref?.();
    const connected = connecting(() => end(one));
    try {
      await one.connect();
    } catch (error) {
      end(one);
      throw error;
    } finally {
      connected();
    }
    return one;
  };
  return {
    name: nameOf(client),
    another: () => nodeRedis(client),
    async send(commands) {
      // A connection may be refused in the server's words, too.
      const connected = (commander ??= open(() => (commander = undefined)));
      const sent = commands.map(async (words) => (await connected).sendCommand(words, { typeMapping: {} }));
      const ends = await Promise.allSettled(sent);
      return ends.map((end): Ended => {
        if (end.status === 'fulfilled') return { result: end.value as Word };
        const refused = refusal(end.reason);
        if (refused === undefined) throw end.reason;
        return { error: refused };
      });
    },
    async subscribe(channel, told, gap) {
      const attempt = async (begun: () => void): Promise<void> => {
        let gone = (): void => {};
        const ended = new Promise<void>((resolve) => (gone = resolve));
        const listener = await open(() => gone());
        await until(closing.signal, () => end(listener), async () => {
          await listener.subscribe(channel, told);
          begun();
          await ended;
        });
      };
      await listening(attempt, gap, closing.signal);
      return () => closing.abort();
    },
    close() {
      closing.abort();
      [...opened.keys()].forEach(end);
    },
  };
}

function nameOf({ options = {} }: NodeRedis): string {
  if (options.url) return new URL(options.url).host;
  const { host = 'localhost', port = 6379, path } = options.socket ?? {};
  return path ?? `${host}:${port}`;
}
