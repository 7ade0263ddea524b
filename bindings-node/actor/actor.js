// The Node actor: one client of the installed package, driven by the JSON lines of tests/README.md.
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, FencelockError, language } from './door.js';

/** The client, and what was made of it. A new one takes the place of all. */
let home = { client: undefined, guards: new Map(), scopes: new Map() };
let guards = 0;
/** The operations that can be given up, by the request. */
const asked = new Map();

const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

class Refusal extends Error {
  constructor(code, message) {
    super(message);
    this.failure = { code, message, retryable: false, fields: {} };
  }
}

function client() {
  if (!home.client) throw new Refusal('closed', 'this actor is not connected; send `connect` first');
  return home.client;
}

function held(number) {
  const guard = home.guards.get(number);
  if (!guard) throw new Refusal('not_held', 'this actor has no such guard');
  return guard;
}

function keep(guard) {
  if (!guard) return null;
  const number = ++guards;
  home.guards.set(number, guard);
  const { token, instant } = guard;
  return { guard: number, token, ...(instant !== undefined && { instant }) };
}

function lock({ lock: name, mode = 'exclusive', permits, scope, options }) {
  if (scope !== undefined) {
    if (!home.scopes.has(scope)) home.scopes.set(scope, client().scope());
    return home.scopes.get(scope).lock(name, options);
  }
  if (mode === 'permit') return client().semaphore(name, permits, options);
  // Readers and writers have no permits: that is an option nobody knows.
  const kind = { exclusive: 'lock', read: 'readLock', write: 'writeLock' }[mode] ?? mode;
  return client()[kind](name, permits === undefined ? options : { ...options, permits });
}

/** An operation that `abort` gives up, as the platform does: by a signal. */
async function cancellable(id, operation) {
  const controller = new AbortController();
  asked.set(id, controller);
  try {
    return await operation(controller.signal);
  } finally {
    asked.delete(id);
  }
}

function shown({ kind, holders, last, waiters }) {
  const holder = ({ heldFor, ...rest }) => ({ ...rest, held_for: heldFor });
  const waiter = ({ waitingFor, ...rest }) => ({ ...rest, waiting_for: waitingFor });
  const all = holders.map(holder);
  return { kind, holder: all[0] ?? null, holders: all, last, waiters: waiters.map(waiter) };
}

const told = (leader) => leader && { token: leader.token, info: JSON.stringify(leader.info) };
const seen = (leader) => leader && { token: leader.token, info: JSON.parse(leader.info || '{}') };

const operations = {
  ping: () => ({ actor: language, pid: process.pid }),
  connect: async ({ url, options }) => {
    const before = home;
    home = { client: await connect(url, options), guards: new Map(), scopes: new Map() };
    await before.client?.close();
    return null;
  },
  acquire: async (request) => keep(await cancellable(request.id, (signal) => lock(request).acquire({ signal }))),
  try: async (request) =>
    keep(await cancellable(request.id, (signal) => lock(request).tryAcquire({ signal, wait: request.wait }))),
  acquire_all: async ({ id, locks, options }) =>
    keep(await cancellable(id, (signal) => client().all(locks, options).acquire({ signal }))),
  try_all: async ({ id, locks, options, wait }) =>
    keep(await cancellable(id, (signal) => client().all(locks, options).tryAcquire({ signal, wait }))),
  with: ({ id, lock: name, options, work }) =>
    cancellable(id, (signal) =>
      client()
        .lock(name, options)
        .using(async (guard, lost) => (await sleep(work, undefined, { signal: lost }), { token: guard.token }), { signal }),
    ),
  abort: ({ target }) => (asked.get(target)?.abort(), null),
  release: ({ guard }) => held(guard).release(),
  transfer: ({ guard }) => held(guard).transfer(),
  adopt: async ({ text }) => keep(await client().adopt(text)),
  drop: ({ guard }) => {
    // Given back, and nobody waits for how that went.
    const dropped = held(guard);
    void (dropped.instant === undefined ? dropped.release() : dropped.fail()).catch(() => {});
    home.guards.delete(guard);
    return null;
  },
  extend: async ({ guard, ttl }) => (await held(guard).extend(ttl), null),
  is_held: ({ guard }) => home.guards.get(guard)?.isHeld ?? false,
  remaining: ({ guard }) => home.guards.get(guard)?.remaining ?? 0,
  token: ({ guard }) => held(guard).token,
  lost: ({ guard }) => {
    const { signal } = held(guard);
    const lost = () => say({ event: 'lost', guard });
    if (signal.aborted) lost();
    else signal.addEventListener('abort', lost);
    return null;
  },
  inspect: async ({ lock: name, options }) => shown(await client().lock(name, options).inspect()),
  campaign: async ({ id, lock: name, options }) =>
    keep(await cancellable(id, (signal) => client().election(name, options).campaign({ signal }))),
  try_campaign: async ({ id, lock: name, options }) =>
    keep(await cancellable(id, (signal) => client().election(name, options).tryCampaign({ signal }))),
  leader: async ({ lock: name }) => told(await client().election(name).leader()),
  observe: async ({ lock: name, options, seen: before }) => {
    for await (const leader of client().election(name, options).observe({ after: seen(before) })) return told(leader);
  },
  start_job: async ({ id, lock: name, options, period, cron, timezone, at }) => {
    const start = (signal) => client().job(name, cron ? { cron, timezone } : period, options).start({ signal, ...(at != null && { at }) });
    const { run, skipped } = await cancellable(id, start);
    return run ? keep(run) : { skipped: { reason: skipped.reason } };
  },
  end_job: ({ guard, succeeded }) => (succeeded ? held(guard).succeed() : held(guard).fail()),
  inspect_job: ({ lock: name }) => client().job(name, 1000).inspect(),
  read_version: ({ lock: name }) => client().version(name).read(),
  compare_and_set: ({ lock: name, options, expected, value }) =>
    client().version(name, options).compareAndSet(expected, value),
  delete_version: ({ lock: name, options, expected }) => client().version(name, options).delete(expected),
  update: ({ lock: name, options, add }) => {
    const sum = (value = 0) => (value + add < 0 ? undefined : value + add);
    return client().version(name, options).update(sum);
  },
  is_locked: (request) => lock(request).isLocked(),
  break_lock: ({ lock: name, reason, token }) => client().breakLock(name, reason, { token }),
  gate: async ({ resource, token, write }) => {
    const [[name, value]] = typeof write === 'string' ? [[write]] : Object.entries(write);
    return (await client().gate()[name](resource, token, value)) ?? null;
  },
  ping_store: () => client().ping(),
  names: ({ prefix }) => client().names(prefix),
  load: () => client().stats(),
  close: async () => (await client().close(), null),
  busy: ({ time }) => (Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, time), null),
  crash: () => {
    process.removeAllListeners('exit');
    process.exit(9);
  },
};

function failure(error) {
  if (error instanceof Refusal) return error.failure;
  if (error instanceof FencelockError) {
    const { code, message, retryable, fields } = error;
    return { code, message, retryable, fields };
  }
  const code = error?.name === 'AbortError' ? 'cancelled' : 'internal';
  return { code, message: `${error?.name}: ${error?.message}`, retryable: false, fields: {} };
}

async function answer(request) {
  const { id, op } = request;
  try {
    say({ id, ok: (await operations[op](request)) ?? null });
  } catch (error) {
    say({ id, error: failure(error) });
  }
}

/** Only connecting holds up the next requests. */
let turn;
const input = createInterface({ input: process.stdin });
input.on('line', (line) => {
  const request = JSON.parse(line);
  const next = () => (request.op === 'connect' ? (turn = answer(request).finally(() => (turn = undefined))) : void answer(request));
  if (turn) turn = turn.then(next);
  else next();
});
// Then the process has nothing more to do, and ends by itself.
input.on('close', async () => {
  await turn;
  await home.client?.close();
});
