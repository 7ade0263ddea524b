import { listening } from './listening.js';
import { post, type Answer, type Question } from './post.js';
import { unheld } from './timer.js';
import type { Ended, Transport } from './transport.js';

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
 * for a stream of events.
 */
export function http(options: HttpOptions): Transport {
  const { url, token } = options;
  if (!url || token === undefined) {
    throw new TypeError(`http({ url, token }): there is no \`${url ? 'token' : 'url'}\`; is its variable of the environment set?`);
  }
  const base = new URL(url);
  [base.username, base.password] = ['', ''];
  base.pathname = base.pathname.replace(/\/*$/, '/');
  const authorization = `Bearer ${token}`;
  const closing = new AbortController();
  const scrubbed = (text: string): string => text.replaceAll(token || ' ', ' ').trim();

  async function ask(place: string, { headers, ...question }: Question): Promise<Answer> {
    try {
      const address = new URL(place, base);
      const answer = await post(address, { ...question, headers: { ...headers, authorization } });
      // A token belongs to one server, and a redirect turns the POST into a GET or leads to another host.
      if (!isElsewhere(answer)) return answer;
      await answer.body?.cancel();
      const target = answer.headers.get('location');
      const where = target === null ? 'another address' : new URL(target, address).origin;
      throw new Error(`${answer.status || 'it'} sends on to ${where}, where the token is not sent: if it is yours, give that address`);
    } catch (error) {
      const { message, cause, code } = error as Error & { cause?: Error; code?: string };
      throw new Error(scrubbed(`${message || code} ${cause?.message ?? ''}`));
    }
  }

  return {
    name: base.host,
    another: () => http(options),
    async send(commands) {
      // Not ended by a close: it may be what gives a lock back.
      const over = new AbortController();
      const late = unheld(() => over.abort(), PATIENCE);
      try {
        const headers = { 'content-type': 'application/json' };
        const answer = await ask('pipeline', { headers, body: JSON.stringify(commands), signal: over.signal });
        const told = new Response(answer.body);
        if (isWell(answer)) return (await told.json()) as Ended[];
        const { error = answer.statusText } = (await told.json().catch(() => ({}))) as { error?: string };
        // Whoever fails at a request may have carried it out; whoever has too much to do takes it later.
        const said = scrubbed(`${answer.status} ${error}`);
        if (answer.status >= 500 || answer.status === 429) throw new Error(said);
        const word = answer.status === 401 || answer.status === 403 ? 'WRONGPASS' : 'ERR';
        return commands.map(() => ({ error: `${word} ${said}` }));
      } finally {
        clearTimeout(late);
      }
    },
    async subscribe(channel, told, gap) {
      const place = `subscribe/${encodeURIComponent(channel)}`;
      const attempt = async (begun: () => void): Promise<void> => {
        const stream = await ask(place, { headers: { accept: 'text/event-stream' }, signal: closing.signal });
        if (!isWell(stream) || !stream.body) {
          await stream.body?.cancel();
          throw new Error(scrubbed(`${stream.status} ${stream.statusText}`));
        }
        await lines(stream.body, (line) => {
          const [, kind, text = ''] = /^data: ?(subscribe|message),[^,]*,(.*)$/.exec(line) ?? [];
          if (kind === 'message') told(text);
          if (kind === 'subscribe') begun();
        });
      };
      await listening(attempt, gap, closing.signal);
      return () => closing.abort();
    },
    close() {
      closing.abort();
    },
  };
}

const isElsewhere = ({ status }: Answer): boolean => status === 0 || (status >= 300 && status < 400);
const isWell = ({ status }: Answer): boolean => status >= 200 && status < 300;

async function lines(stream: ReadableStream<Uint8Array>, read: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  let text = '';
  for (;;) {
    const silent = unheld(() => void reader.cancel().catch(() => {}), SILENCE);
    const { done, value } = await reader.read().finally(() => clearTimeout(silent));
    if (done) return;
    const whole = (text + decoder.decode(value, { stream: true })).split(/\r?\n/);
    text = whole.pop() ?? '';
    whole.forEach(read);
  }
}
