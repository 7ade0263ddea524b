"""redis-py, its asyncio twin, python-redis-lock and kazoo as actors; tests/README.md has the protocol.

Those on Redis try again every 10 ms where they poll: quicker than their defaults, so that a case takes no longer than it must.
"""

import asyncio
import itertools
import json
import os
import sys
import threading
import urllib.parse

import redis
import redis.asyncio
import redis_lock
from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout

POLL = 0.01


class RedisPy:
    def __init__(self, url):
        self.client = redis.Redis.from_url(url)

    def take(self, name, ttl, wait, renew):
        lock = self.client.lock(name, timeout=ttl / 1000, sleep=POLL, thread_local=False)
        won = lock.acquire(blocking=wait != 0, blocking_timeout=wait and wait / 1000)
        return lock if won else None

    def release(self, lock):
        try:
            lock.release()
        except redis.exceptions.LockNotOwnedError:
            return "already_lost"
        return "released"

    def extend(self, lock, ttl):
        lock.extend(ttl / 1000, replace_ttl=True)


class RedisPyAsyncio:
    """The same calls, all in the one loop that asyncio programs have."""

    def __init__(self, url):
        self.client = redis.asyncio.Redis.from_url(url)
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def take(self, name, ttl, wait, renew):
        async def take():
            lock = self.client.lock(name, timeout=ttl / 1000, sleep=POLL, thread_local=False)
            won = await lock.acquire(blocking=wait != 0, blocking_timeout=wait and wait / 1000)
            return lock if won else None

        return self.run(take())

    def release(self, lock):
        try:
            self.run(lock.release())
        except redis.exceptions.LockNotOwnedError:
            return "already_lost"
        return "released"

    def extend(self, lock, ttl):
        self.run(lock.extend(ttl / 1000, replace_ttl=True))


class PythonRedisLock:
    """Knows whole seconds only. It does not poll: a release wakes one waiter, or the end of `expire` does."""

    def __init__(self, url):
        # It waits inside one command, for longer than the connection's patience is by default.
        self.client = redis.Redis.from_url(url, socket_timeout=None)

    def take(self, name, ttl, wait, renew):
        expire = max(1, round(ttl / 1000))
        lock = redis_lock.Lock(self.client, name, expire=expire, auto_renewal=renew)
        timeout = max(1, round(wait / 1000)) if wait else None
        return lock if lock.acquire(blocking=wait != 0, timeout=timeout) else None

    def release(self, lock):
        try:
            lock.release()
        except redis_lock.NotAcquired:
            return "already_lost"
        return "released"

    def extend(self, lock, ttl):
        lock.extend(max(1, round(ttl / 1000)))


class Kazoo:
    """All its locks live as long as the session, for the seconds that the URL asks for by `ttl`."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        ttl = urllib.parse.parse_qs(parts.query)["ttl"][0].removesuffix("s")
        self.client = KazooClient(hosts=parts.netloc + parts.path, timeout=float(ttl))
        self.client.start()

    def take(self, name, ttl, wait, renew, kind="exclusive"):
        kinds = {"exclusive": "Lock", "read": "ReadLock", "write": "WriteLock"}
        lock = getattr(self.client, kinds[kind])("/" + name)
        try:
            won = lock.acquire(blocking=wait != 0, timeout=wait / 1000 if wait else None)
        except LockTimeout:
            return None
        return lock if won else None

    def release(self, lock):
        lock.release()
        return "released"


LIBRARIES = {
    "redis-py": RedisPy,
    "redis-py-asyncio": RedisPyAsyncio,
    "python-redis-lock": PythonRedisLock,
    "kazoo": Kazoo,
}


class Actor:
    def __init__(self, library):
        self.library, self.client, self.options = library, None, {}
        self.guards, self.numbers, self.output = {}, itertools.count(1), threading.Lock()

    def say(self, message):
        with self.output:
            print(json.dumps(message), flush=True)

    def serve(self, request):
        try:
            self.say({"id": request["id"], "ok": self.do(**request)})
        except Exception as error:
            code = "timeout" if isinstance(error, TimeoutError) else "internal"
            message = f"{type(error).__name__}: {error}"
            told = {"code": code, "message": message, "retryable": code == "timeout"}
            self.say({"id": request["id"], "error": told})

    def do(self, op, id, lock=None, guard=None, options={}, url=None, ttl=None):
        if op == "ping":
            return {"actor": sys.argv[1], "pid": os.getpid()}
        if op == "connect":
            self.client, self.options = self.library(url), options
            return None
        if op in ("acquire", "try"):
            options = {**self.options, **options}
            wait = 0 if op == "try" else options.get("wait")
            # Only a library with several kinds is asked for one.
            kind = {"kind": options["kind"]} if "kind" in options else {}
            renew = options.get("renew", False)
            held = self.client.take(lock, options["ttl"], wait, renew, **kind)
            if held is None and op == "acquire":
                raise TimeoutError("the wait ended before the lock was granted")
            if held is None:
                return None
            number = next(self.numbers)
            self.guards[number] = held
            return {"guard": number, "token": 0}
        if op == "release":
            return self.client.release(self.guards.pop(guard))
        if op == "extend":
            return self.client.extend(self.guards[guard], ttl)
        raise ValueError(f"this actor does not know `{op}`")


actor = Actor(LIBRARIES[sys.argv[1]])
for line in sys.stdin:
    asked = json.loads(line)
    if asked["op"] == "crash":
        os._exit(9)
    if asked["op"] == "connect":
        actor.serve(asked)
    else:
        threading.Thread(target=actor.serve, args=[asked], daemon=True).start()
os._exit(0)
