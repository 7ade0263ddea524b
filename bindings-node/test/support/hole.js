// A server that says nothing: it accepts and never answers, or does not even accept.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';

// Whoever tries to reach a port that nobody listens to may come to use it itself, until it gives up.
const LISTENER = `const server = require('node:net').createServer();
const listen = () => server.listen({ port: Number(process.argv[1]), host: '127.0.0.1', backlog: 1 });
server.on('listening', () => console.log(server.address().port));
server.on('error', () => setTimeout(listen, 50));
listen();`;
/** More than wait to be accepted there. */
const CROWD = 6;

export class Hole {
  /** On a port of its own, or on that of somebody who has gone. */
  static async open({ port = 0, accepts = false } = {}) {
    const hole = new Hole();
    hole.process = spawn(process.execPath, ['--eval', LISTENER, String(port)], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [said] = await once(hole.process.stdout, 'data');
    hole.port = Number(said);
    // The system goes on accepting for it, until too many wait to be greeted: then it hears nothing more.
    hole.process.kill('SIGSTOP');
    const crowd = accepts ? 0 : CROWD;
    hole.crowd = Array.from({ length: crowd }, () => connect(hole.port, '127.0.0.1').on('error', () => {}));
    if (hole.crowd[0]) await once(hole.crowd[0], 'connect');
    return hole;
  }

  get url() {
    return `redis://127.0.0.1:${this.port}`;
  }

  async close() {
    const gone = once(this.process, 'exit');
    this.process.kill('SIGKILL');
    await gone;
    for (const socket of this.crowd) socket.destroy();
  }
}
