import { builtin } from './builtin.js';
import { connecting } from './pulse.js';

/** A request, as `fetch` takes it. */
export interface Question {
  readonly headers: Record<string, string>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

/** The part of an answer of `fetch` that is used here. */
export interface Answer {
  /** 0 is a redirect, too, of which a browser does not tell where to. */
  readonly status: number;
  readonly statusText: string;
  readonly headers: { get(name: 'location'): string | null };
  readonly body: ReadableStream<Uint8Array> | null;
}


/**
 * Posts, and follows no redirect. In Node.js what `fetch` has under way keeps the process alive, also a stream that nobody waits
 * for: there Node's own client does it, over connections that keep nothing alive. Whoever waits does.
 */
export function post(address: URL, question: Question): Promise<Answer> {
  return builtin ? unheld(builtin, address, question) : fetch(address, { method: 'POST', redirect: 'manual', ...question });
}

function unheld(modules: NonNullable<typeof builtin>, address: URL, { body, headers, signal }: Question): Promise<Answer> {
  const { request } = address.protocol === 'https:' ? modules('node:https') : modules('node:http');
  const { Readable } = modules('node:stream');
  return new Promise((resolve, reject) => {
    const asked = request(address, { method: 'POST', signal, headers: { ...headers, 'accept-encoding': 'identity' } });
    asked.on('socket', (socket) => {
      socket.unref();
      if (!socket.connecting) return;
      const connected = connecting(() => socket.destroy(new Error('it could not be connected to')));
      socket.once('connect', connected).once('close', connected);
    });
    asked.on('error', reject);
    asked.on('response', (answer) => {
      const { statusCode: status = 0, statusMessage: statusText = '' } = answer;
      const { location = null, 'content-encoding': encoding = 'identity' } = answer.headers;
      if (encoding !== 'identity') {
        answer.destroy();
        return reject(new Error(`its answer is encoded as ${encoding}, which nobody asked for`));
      }
      const body = Readable.toWeb(answer) as ReadableStream<Uint8Array>;
      resolve({ status, statusText, headers: { get: () => location }, body });
    });
    asked.end(body);
  });
}
