import type { Ended, Transport } from './transport.js';

/** The longest rest between two attempts to listen, in milliseconds. */
const LONGEST_REST = 1000;

/** Where the server is, and who asks. */
export interface HttpOptions {
  /** Its address: `https://example-12345.upstash.io`. */
  url: string;
  /** Its token, which no error and no log ever shows. */
  token: string;
}

/**
 * Over HTTP, in the shape of Upstash's REST interface: `POST /pipeline` with the commands as JSON, `GET /subscribe/<channel>`
 * for a stream of events.
 */
export function http({ url, token }: HttpOptions): Transport {
  const base = new URL(url);
  base.pathname = base.pathname.replace(/\/*$/, '/');
  const headers = { authorization: `Bearer ${token}` };
  const ask = (place: string, request: RequestInit): Promise<Response> => fetch(new URL(place, base), { ...request, headers });
  return {
    name: base.host,
    async send(commands) {
      const answer = await ask('pipeline', { method: 'POST', body: JSON.stringify(commands) });
      if (answer.ok) return (await answer.json()) as Ended[];
      const { error = answer.statusText } = (await answer.json().catch(() => ({}))) as { error?: string };
      // Whoever refuses a request has not carried it out; whoever fails at it may have.
      if (answer.status >= 500) throw new Error(`${answer.status} ${error}`);
      const word = answer.status === 401 || answer.status === 403 ? 'WRONGPASS ' : '';
      return commands.map(() => ({ error: `${word}${error}` }));
    },
    async subscribe(channel, told, gap) {
      const ending = new AbortController();
      const listen = (): Promise<Response> =>
        ask(`subscribe/${encodeURIComponent(channel)}`, { signal: ending.signal });
      const first = await listen();
      if (!first.ok || !first.body) throw new Error(`${first.status} ${first.statusText}`);
      void follow(first, listen, ending.signal, (line) => {
        const message = /^data: ?message,[^,]*,(.*)$/.exec(line)?.[1];
        if (message !== undefined) told(message);
      }, gap);
      return () => ending.abort();
    },
  };
}

/** Reads a stream line by line, and another one when it ends, until it is aborted. */
async function follow(
  first: Response,
  again: () => Promise<Response>,
  ending: AbortSignal,
  read: (line: string) => void,
  gap: () => void,
): Promise<void> {
  let rest = 10;
  for (let stream: Response | undefined = first; !ending.aborted; stream = await again().catch(() => undefined)) {
    if (stream?.ok && stream.body) {
      // What was told while nobody listened is gone.
      if (stream !== first) gap();
      rest = 10;
      await lines(stream.body, read).catch(() => {});
    }
    if (ending.aborted) return;
    await new Promise((resolve) => setTimeout(resolve, rest));
    rest = Math.min(rest * 2, LONGEST_REST);
  }
}

async function lines(stream: ReadableStream<Uint8Array>, read: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const whole = (text + decoder.decode(value, { stream: true })).split(/\r?\n/);
    text = whole.pop() ?? '';
    whole.forEach(read);
  }
}
