// What answers in the shape of Upstash's REST interface, before a Redis server.
import { createServer } from 'node:http';
import { Redis } from 'ioredis';

export const TOKEN = 'not-for-everybody';

async function body(request) {
  let text = '';
  for await (const part of request) text += part;
  return JSON.parse(text);
}

/** How a command ended, in the server's words; what its client says is not known to be its end. */
function end([error, result]) {
  if (error && error.name !== 'ReplyError') throw error;
  return error ? { error: error.message } : { result };
}

/** A connection that keeps no process alive, neither while it lasts nor by trying again for ever when its server is gone. */
function unheld(url) {
  const redis = new Redis(url, { autoResendUnfulfilledCommands: false, retryStrategy: null });
  redis.on('error', () => {});
  return redis.on('connect', () => redis.stream.unref());
}

/** Answers requests by what lies at `url`, until it is closed. */
export function answering(url) {
  const connections = new Set();
  let redis;

  function open() {
    const connection = unheld(url);
    connections.add(connection);
    return connection.on('end', () => {
      connections.delete(connection);
      if (redis === connection) redis = undefined;
    });
  }

  async function pipeline(request, response) {
    const commands = await body(request);
    redis ??= open();
    const ends = await redis.pipeline(commands.map((words) => ['call', ...words])).exec();
    response.end(JSON.stringify(ends.map(end)));
  }

  async function subscribe(channel, response) {
    const listener = open();
    listener.on('close', () => response.destroy());
    listener.on('message', (from, message) => response.write(`data: message,${from},${message}\n\n`));
    response.on('close', () => listener.disconnect());
    await listener.subscribe(channel);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(`data: subscribe,${channel},1\n\n`);
  }

  async function answer(request, response) {
    const channel = /\/subscribe\/(.*)$/.exec(request.url)?.[1];
    try {
      if (request.headers.authorization !== `Bearer ${TOKEN}`) {
        response.writeHead(401).end(JSON.stringify({ error: 'Unauthorized' }));
      } else if (channel) {
        await subscribe(decodeURIComponent(channel), response);
      } else {
        await pipeline(request, response);
      }
    } catch {
      // What became of it is not known here, and so not there.
      response.destroy();
    }
  }

  return { answer, close: () => connections.forEach((one) => one.disconnect()) };
}

/** Serves what lies at `url`, until it is closed or the process has nothing else to do, and answers how to be asked. */
export async function serve(url) {
  const { answer, close } = answering(url);
  const server = createServer(answer).unref();
  // What is kept alive for the next request keeps no process alive.
  server.on('connection', (socket) => socket.unref());
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const end = () => {
    server.closeAllConnections();
    server.close();
    close();
  };
  return { url: `http://127.0.0.1:${server.address().port}`, token: TOKEN, close: end };
}
