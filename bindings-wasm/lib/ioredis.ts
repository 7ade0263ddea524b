import type { Ended, Transport, Word } from './transport.js';

/** What is used of a client of the package `ioredis`. */
export interface IORedis {
  readonly options: { readonly host?: string; readonly port?: number; readonly path?: string };
  duplicate(options: object): IORedis;
  pipeline(commands: unknown[][]): { exec(): Promise<[Error | null, unknown][] | null> };
  subscribe(channel: string): Promise<unknown>;
  on(event: string, listener: (...words: never[]) => void): unknown;
  disconnect(): void;
}

/**
 * Over the package `ioredis`. It opens connections of its own, with the options of the client it is given: that client's
 * settings for sending again are not for locks, and a connection that listens does nothing else.
 */
export function ioredis(client: IORedis): Transport {
  const own = { autoResendUnfulfilledCommands: false, keyPrefix: '', lazyConnect: false };
  let commander: IORedis | undefined;
  const listeners = new Set<IORedis>();
  const { host = 'localhost', port = 6379, path } = client.options;
  return {
    name: path ?? `${host}:${port}`,
    async send(commands) {
      commander ??= quiet(client.duplicate(own));
      const replies = await commander.pipeline(commands.map((words) => ['call', ...words])).exec();
      return (replies ?? []).map(([error, result]): Ended => {
        if (!error) return { result: result as Word };
        if (error.name === 'ReplyError') return { error: error.message };
        throw error;
      });
    },
    async subscribe(channel, told, gap) {
      const listener = quiet(client.duplicate(own));
      listeners.add(listener);
      listener.on('message', (_: string, message: string) => told(message));
      await listener.subscribe(channel);
      // Whoever reconnects subscribes again by itself, and may have missed something.
      listener.on('ready', gap);
      return () => {
        listeners.delete(listener);
        listener.disconnect();
      };
    },
    close() {
      commander?.disconnect();
      listeners.forEach((listener) => listener.disconnect());
    },
  };
}

/** What goes wrong is told by the commands it goes wrong for. */
function quiet(client: IORedis): IORedis {
  client.on('error', () => {});
  return client;
}
