import { refusal, type Ended, type Transport, type Word } from './transport.js';

/** What is used of a client of the package `redis`. */
export interface NodeRedis {
  readonly options?: { readonly url?: string; readonly socket?: { readonly host?: string; readonly port?: number; readonly path?: string } };
  duplicate(): NodeRedis;
  connect(): Promise<unknown>;
  destroy(): void;
  unref?(): void;
  sendCommand(words: readonly string[], options?: object): Promise<unknown>;
  subscribe(channel: string, told: (message: string) => void): Promise<unknown>;
  on(event: string, listener: (...words: any[]) => void): unknown;
}

/** Over the package `redis` (node-redis). It opens connections of its own, with the options of the client it is given. */
export function nodeRedis(client: NodeRedis): Transport {
  const opened = new Set<NodeRedis>();
  let commander: Promise<NodeRedis> | undefined;
  const open = async (): Promise<NodeRedis> => {
    const one = client.duplicate();
    opened.add(one);
    // What goes wrong is told by the commands it goes wrong for. By itself a lock keeps no process alive.
    one.on('error', () => {});
    await one.connect();
    one.unref?.();
    return one;
  };
  const end = (one: NodeRedis): void => {
    if (opened.delete(one)) one.destroy();
  };
  return {
    name: nameOf(client),
    another: () => nodeRedis(client),
    async send(commands) {
      const connected = await (commander ??= open());
      const sent = commands.map((words) => connected.sendCommand(words, { typeMapping: {} }));
      const ends = await Promise.allSettled(sent);
      return ends.map((end): Ended => {
        if (end.status === 'fulfilled') return { result: end.value as Word };
        const refused = refusal(end.reason);
        if (refused === undefined) throw end.reason;
        return { error: refused };
      });
    },
    async subscribe(channel, told, gap) {
      const listener = await open();
      await listener.subscribe(channel, told);
      // Whoever reconnects subscribes again by itself, and may have missed something.
      listener.on('ready', gap);
      return () => end(listener);
    },
    close() {
      opened.forEach(end);
    },
  };
}

function nameOf({ options = {} }: NodeRedis): string {
  if (options.url) return new URL(options.url).host;
  const { host = 'localhost', port = 6379, path } = options.socket ?? {};
  return path ?? `${host}:${port}`;
}
