import type { Ended, Transport } from './transport.js';

/** The longest rest between two attempts to listen, in milliseconds. */
const LONGEST_REST = 1000;
/**
 * After so long a silence a stream is given up for another one, in milliseconds: a network that changed says nothing, and a stream
 * without its other end looks like one without news.
 */
const SILENCE = 30_000;
/** For how long an answer is waited for at the very most, in milliseconds. The core gives up sooner, by `timeout`. */
const PATIENCE = 60_000;

/** Where the server is, and who asks. */
export interface HttpOptions {
  /** Its address: `https://example-12345.upstash.io`. */
  url: string;
  /** Its token, which no error and no log ever shows. */
  token: string;
}

/**
 * Over HTTP, in the shape of Upstash's REST interface: `POST /pipeline` with the commands as JSON, `POST /subscribe/<channel>`
 * for a stream of events. While it listens, it keeps a server's process alive.
 */
export function http(options: HttpOptions): Transport {
  const { url, token } = options;
  const base = new URL(url);
  [base.username, base.password] = ['', ''];
  base.pathname = base.pathname.replace(/\/*$/, '/');
  const headers = { authorization: `Bearer ${token}` };
  const closing = new AbortController();

  async function ask(place: string, request: RequestInit): Promise<Response> {
    try {
      return await fetch(new URL(place, base), { method: 'POST', ...request, headers: { ...headers, ...request.headers } });
    } catch (error) {
      const { message, cause } = error as Error & { cause?: Error };
      throw new Error(`${message} ${cause?.message ?? ''}`.replaceAll(token || ' ', ' ').trim());
    }
  }

  return {
    name: base.host,
    another: () => http(options),
    async send(commands) {
      // Not ended by a close: it may be what gives a lock back.
      const signal = AbortSignal.timeout(PATIENCE);
      const answer = await ask('pipeline', { body: JSON.stringify(commands), signal });
      if (answer.ok) return (await answer.json()) as Ended[];
      const { error = answer.statusText } = (await answer.json().catch(() => ({}))) as { error?: string };
      // Whoever refuses a request has not carried it out; whoever fails at it may have.
      if (answer.status >= 500) throw new Error(`${answer.status} ${error}`);
      const word = answer.status === 401 || answer.status === 403 ? 'WRONGPASS' : 'ERR';
      return commands.map(() => ({ error: `${word} ${answer.status} ${error}` }));
    },
    subscribe(channel, told, gap) {
      const listen = (): Promise<Response> =>
        ask(`subscribe/${encodeURIComponent(channel)}`, { headers: { accept: 'text/event-stream' }, signal: closing.signal });
      return new Promise((resolve, reject) => {
        let listening = false;
        const begun = (): void => {
          // What was told while nobody listened is gone.
          if (listening) gap();
          listening = true;
          resolve(() => closing.abort());
        };
        follow(listen, closing.signal, begun, told).catch(reject);
      });
    },
    close() {
      closing.abort();
    },
  };
}

/** Reads a stream, and another one when it ends, until that is aborted. Only the first has to be there. */
async function follow(
  listen: () => Promise<Response>,
  closing: AbortSignal,
  begun: () => void,
  told: (message: string) => void,
): Promise<void> {
  let rest = 10;
  const read = (line: string): void => {
    const [, kind, text = ''] = /^data: ?(subscribe|message),[^,]*,(.*)$/.exec(line) ?? [];
    if (kind === 'message') told(text);
    if (kind === 'subscribe') begun();
  };
  const first = await listen();
  if (!first.ok || !first.body) throw new Error(`${first.status} ${first.statusText}`);
  for (let stream: Response | undefined = first; !closing.aborted; stream = await listen().catch(() => undefined)) {
    const began = performance.now();
    if (stream?.ok && stream.body) await lines(stream.body, read).catch(() => {});
    if (closing.aborted) return;
    if (performance.now() - began > LONGEST_REST) rest = 10;
    await new Promise((resolve) => setTimeout(resolve, rest));
    rest = Math.min(rest * 2, LONGEST_REST);
  }
}

async function lines(stream: ReadableStream<Uint8Array>, read: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  let text = '';
  for (;;) {
    const silent = setTimeout(() => void reader.cancel().catch(() => {}), SILENCE);
    const { done, value } = await reader.read().finally(() => clearTimeout(silent));
    if (done) return;
    const whole = (text + decoder.decode(value, { stream: true })).split(/\r?\n/);
    text = whole.pop() ?? '';
    whole.forEach(read);
  }
}
