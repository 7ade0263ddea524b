// Programs over the installed package, in processes of their own.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** The time that a machine with other things to do may add, in milliseconds. */
export const SLACK = 1_000;
/** So soon a process ends that has nothing more to do. */
const END = 300;

const FOLDER = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Runs a script to its end: what it printed, how it ended, and how long it lived after it printed `end`. Within the script
 * `url` is the store's. `heard` is called with what it prints, and with its process.
 */
export function run(script, { url = 'memory:', flags = [], ...how } = {}) {
  const text = `import { connect, LockLostError } from 'fencelock';\nconst url = ${JSON.stringify(url)};\n${script}`;
  return node(['--input-type=module', ...flags, '--eval', text], how);
}

/** The same for a file, which is given words. */
export const runFile = (file, { words = [], ...how } = {}) => node([file, ...words], how);

async function node(words, { most = 20_000, heard = () => {}, env = {} }) {
  const child = spawn(process.execPath, words, { cwd: FOLDER, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  let [out, err, ended] = ['', '', undefined];
  child.stdout.setEncoding('utf8').on('data', (data) => {
    out += data;
    if (data.includes('end\n')) ended = performance.now();
    heard(data, child);
  });
  child.stderr.setEncoding('utf8').on('data', (data) => (err += data));
  const timer = setTimeout(() => child.kill('SIGKILL'), most);
  const [code, signal] = await once(child, 'close');
  clearTimeout(timer);
  return { out, err, code, signal, after: ended === undefined ? undefined : performance.now() - ended };
}

/** A program has ended by itself, well and soon, with no complaint but warnings of these kinds. */
export function ended(program, within = END, ...kinds) {
  const complaints = program.err.split('\n').filter((line) => !kinds.some((kind) => line.includes(`[FENCELOCK_${kind}]`)));
  const expected = kinds.length > 0 ? /^(\(Use `node --trace-warnings .*)?$/ : /^$/;
  assert.deepEqual([program.code, program.signal, complaints.filter((line) => !expected.test(line))], [0, null, []]);
  assert.ok(program.after < within, `it lived on for ${program.after} ms`);
}

/** A script that loses a lock of this name, and then tells whether its guard still claims it. */
export const losing = (name) => `
  const client = await connect(url);
  const guard = await client.lock(${JSON.stringify(name)}, { ttl: 1_000, renew: false }).acquire();
  const { signal } = guard;
  const look = setInterval(() => {
    if (!signal.aborted) return;
    clearInterval(look);
    console.log(guard.isHeld);
  }, 10);`;
