// A redis-server of a test's own, on a free port, without persistence.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

export class Redis {
  static async start() {
    const redis = new Redis();
    redis.folder = mkdtempSync(join(tmpdir(), 'fencelock-'));
    redis.port = await freePort();
    const program = process.env.FENCELOCK_REDIS_SERVER ?? 'redis-server';
    const words = ['--port', redis.port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', redis.folder];
    // U47: it ends with this process, however that ends, and holds no pipe that the test runner waits for.
    const [command, ...rest] = process.platform === 'linux' ? ['setpriv', '--pdeathsig', 'KILL', program] : [program];
    redis.process = spawn(command, [...rest, ...words], { stdio: ['ignore', 'pipe', 'ignore'] });
    redis.process.stdout.setEncoding('utf8');
    await new Promise((resolve, reject) => {
      let said = '';
      redis.process.once('error', reject);
      redis.process.once('exit', () => reject(new Error(`redis-server ended: ${said}`)));
      redis.process.stdout.on('data', (text) => {
        said += text;
        if (said.includes('eady to accept connections')) resolve();
      });
    });
    return redis;
  }

  get url() {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** A raw command, as somebody else. */
  async command(...words) {
    const socket = connect(this.port, '127.0.0.1').setEncoding('utf8');
    const parts = words.map((word) => `$${Buffer.byteLength(String(word))}\r\n${word}\r\n`);
    socket.write(`*${words.length}\r\n${parts.join('')}`);
    let text = '';
    for await (const chunk of socket) {
      text += chunk;
      const answer = parse(text);
      if (answer) {
        socket.destroy();
        return answer.value;
      }
    }
    throw new Error(`redis-server hung up: ${text}`);
  }

  /** Every lock key, and every record that has no end. At rest there are none. */
  async leftovers() {
    const keys = await this.command('KEYS', '*');
    const left = [];
    for (const key of keys) {
      const held = !key.startsWith('fencelock:{') || key.includes('}:held:');
      if (held || Number(await this.command('PTTL', key)) === -1) left.push(key);
    }
    return left.filter((key) => !/}:version:|fencelock:born/.test(key));
  }

  signal(name) {
    this.process.kill(name);
  }

  async stop() {
    this.process.removeAllListeners('exit');
    const gone = once(this.process, 'exit');
    this.process.kill('SIGKILL');
    await gone;
    rmSync(this.folder, { recursive: true });
  }
}

/** The answer at the head of the text, if all of it is there. */
function parse(text) {
  const end = text.indexOf('\r\n');
  if (end < 0) return undefined;
  const [kind, line, rest] = [text[0], text.slice(1, end), text.slice(end + 2)];
  if (kind === '+' || kind === ':' || kind === '-') return { value: line, rest };
  const length = Number(line);
  if (kind === '$') {
    if (length < 0) return { value: null, rest };
    const bytes = Buffer.from(rest);
    if (bytes.length < length + 2) return undefined;
    return { value: bytes.subarray(0, length).toString(), rest: bytes.subarray(length + 2).toString() };
  }
  const value = [];
  let left = rest;
  while (value.length < length) {
    const one = parse(left);
    if (!one) return undefined;
    value.push(one.value);
    left = one.rest;
  }
  return { value, rest: left };
}
