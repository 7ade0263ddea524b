// node-redlock and redis-semaphore's Mutex as actors; tests/README.md has the protocol.
//
// They try again every 10 ms: quicker than their defaults, so that a case takes no longer than it must.
import { createInterface } from "node:readline";
import { Redis } from "ioredis";
import Redlock, { ExecutionError, ResourceLockedError } from "redlock";
import { Mutex } from "redis-semaphore";

const POLL = 10;
const FOR_EVER = 2 ** 31 - 1;

class NodeRedlock {
  constructor(url) {
    this.redlock = new Redlock([new Redis(url)], { retryDelay: POLL, retryJitter: POLL / 2 });
  }

  /** Whether this is the library's way to say that the lock is not ours. */
  async notOurs(error) {
    if (!(error instanceof ExecutionError)) return false;
    const votes = await Promise.all(error.attempts);
    return votes.every(({ votesAgainst }) => [...votesAgainst.values()].every((one) => one instanceof ResourceLockedError));
  }

  async take(name, ttl, wait) {
    const retryCount = wait === undefined ? -1 : Math.ceil(wait / POLL);
    try {
      return await this.redlock.acquire([name], ttl, { retryCount });
    } catch (error) {
      if (await this.notOurs(error)) return null;
      throw error;
    }
  }

  async release(lock) {
    try {
      await this.redlock.release(lock, { retryCount: 0 });
    } catch (error) {
      if (await this.notOurs(error)) return "already_lost";
      throw error;
    }
    return "released";
  }

  extend(lock, ttl) {
    return this.redlock.extend(lock, ttl, { retryCount: 0 });
  }
}

/** Its release does not tell whether there was anything to release. */
class RedisSemaphore {
  constructor(url) {
    this.client = new Redis(url);
  }

  async take(name, lockTimeout, wait, renew) {
    const mutex = new Mutex(this.client, name, {
      lockTimeout,
      acquireTimeout: wait || FOR_EVER,
      acquireAttemptsLimit: wait === 0 ? 1 : Infinity,
      retryInterval: POLL,
      refreshInterval: renew ? lockTimeout / 3 : 0,
    });
    return (await mutex.tryAcquire()) ? mutex : null;
  }

  async release(mutex) {
    await mutex.release();
    return "released";
  }
}

const [name] = process.argv.slice(2);
const library = { "node-redlock": NodeRedlock, "redis-semaphore": RedisSemaphore }[name];
const guards = new Map();
let client;
let defaults = {};
let last = 0;

async function take({ lock, options }, once) {
  const { ttl, wait, renew } = { ...defaults, ...options };
  const held = await client.take(lock, ttl, once ? 0 : wait, renew === true);
  if (!held && once) return null;
  if (!held) throw Object.assign(new Error("the wait ended before the lock was granted"), { code: "timeout" });
  guards.set(++last, held);
  return { guard: last, token: 0 };
}

const operations = {
  ping: () => ({ actor: name, pid: process.pid }),
  connect: ({ url, options }) => {
    [client, defaults] = [new library(url), options];
    return null;
  },
  acquire: (request) => take(request, false),
  try: (request) => take(request, true),
  release: async ({ guard }) => {
    const held = guards.get(guard);
    guards.delete(guard);
    return client.release(held);
  },
  extend: async ({ guard, ttl }) => {
    guards.set(guard, await client.extend(guards.get(guard), ttl));
    return null;
  },
  crash: () => process.exit(9),
};

createInterface({ input: process.stdin })
  .on("line", async (line) => {
    const request = JSON.parse(line);
    const answer = { id: request.id };
    try {
      answer.ok = await operations[request.op](request);
    } catch (error) {
      const code = error.code === "timeout" ? "timeout" : "internal";
      answer.error = { code, message: `${error.name}: ${error.message}`, retryable: code === "timeout" };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
  })
  .on("close", () => process.exit(0));
