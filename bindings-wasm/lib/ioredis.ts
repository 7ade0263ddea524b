import { listening, until } from './listening.js';
import { connecting } from './pulse.js';
import { refusal, type Ended, type Transport, type Word } from './transport.js';

/** The part of a client of the package `ioredis` that is used here. */
export interface IORedis {
  readonly options: { readonly host?: string; readonly port?: number; readonly path?: string };
  readonly stream?: { unref?(): unknown };
  duplicate(options: object): IORedis;
  pipeline(commands: unknown[][]): { exec(): Promise<[Error | null, unknown][] | null> };
  subscribe(channel: string): Promise<unknown>;
  on(event: string, listener: (...words: never[]) => void): unknown;
  disconnect(): void;
}

/**
 * The options that locks need, whatever the client's: nothing is sent twice, and commands fail once their connection ends.
 * It is made anew here, when it is needed: the timers of ioredis would keep the process alive until the server is back.
 */
const OWN = {
  autoResendUnfulfilledCommands: false,
  disconnectTimeout: 100,
  enableOfflineQueue: true,
  keyPrefix: '',
  lazyConnect: false,
  maxRetriesPerRequest: 0,
  reconnectOnError: null,
  retryStrategy: null,
  sentinelRetryStrategy: null,
  stringNumbers: false,
};

/**
 * Over the package `ioredis`. It opens connections of its own, with the options of the client it is given, but for those that
 * are not for locks; a connection that listens does nothing else.
 */
export function ioredis(client: IORedis): Transport {
  const opened = new Set<IORedis>();
  const closing = new AbortController();
  let commander: IORedis | undefined;
  const open = (): IORedis => {
    const one = client.duplicate(OWN);
    opened.add(one);
    const connected = connecting(() => one.disconnect());
    // What goes wrong is told by the commands it goes wrong for. By itself a lock keeps no process alive.
    one.on('error', () => {});
    one.on('connect', () => {
      connected();
      one.stream?.unref?.();
    });
    one.on('end', () => {
      connected();
      opened.delete(one);
      if (commander === one) commander = undefined;
    });
    return one;
  };
  const end = (one: IORedis): void => {
    if (opened.delete(one)) one.disconnect();
  };
  const { host = 'localhost', port = 6379, path } = client.options;
  return {
    name: path ?? `${host}:${port}`,
    another: () => ioredis(client),
    async send(commands) {
      commander ??= open();
      const replies = await commander.pipeline(commands.map((words) => ['call', ...words])).exec();
      return (replies ?? []).map(([error, result]): Ended => {
        if (!error) return { result: result as Word };
        const refused = refusal(error);
        if (refused === undefined) throw error;
        return { error: refused };
      });
    },
    async subscribe(channel, told, gap) {
      const attempt = async (begun: () => void): Promise<void> => {
        const listener = open();
        const ended = new Promise<void>((resolve) => listener.on('end', resolve));
        await until(closing.signal, () => end(listener), async () => {
          listener.on('message', (_: string, message: string) => told(message));
          await listener.subscribe(channel);
          begun();
          await ended;
        });
      };
      await listening(attempt, gap, closing.signal);
      return () => closing.abort();
    },
    close() {
      closing.abort();
      opened.forEach(end);
    },
  };
}
