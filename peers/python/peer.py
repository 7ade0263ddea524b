"""redis-py's Lock, its asyncio twin, python-redis-lock and kazoo's Lock on the bench's courses; see src/subject/mod.rs for the protocol."""

import asyncio
import json
import os
import sys
import threading
import time

import redis
import redis.asyncio
import redis_lock
from kazoo.client import KazooClient

contestant, workload, *words = sys.argv[1:]
course = dict(word.split("=", 1) for word in words)
if contestant == "kazoo":
    client = KazooClient(course["server"], timeout=30)
    client.start()
else:
    client = redis.Redis.from_url(course["url"])


def acquire(key):
    """Waits as long as it takes, at the library's default delays."""
    if contestant == "kazoo":
        lock = client.Lock(f"/{key}")
    elif contestant == "redis-py":
        lock = client.lock(key, timeout=30)
    else:
        lock = redis_lock.Lock(client, key, expire=30)
    assert lock.acquire()
    return lock


def ready():
    print("ready", flush=True)
    sys.stdin.readline()


def pair():
    pairs = int(course["pairs"])
    for _ in range(pairs // 10):
        acquire(course["key"]).release()
    ready()
    times = []
    for _ in range(pairs):
        begin = time.perf_counter()
        acquire(course["key"]).release()
        times.append((time.perf_counter() - begin) * 1e6)
    times.sort()
    return {
        "p50_us": times[(pairs - 1) // 2],
        "p99_us": times[int((pairs - 1) * 0.99)],
        "pairs": pairs,
    }


class Turn:
    """The last holder of the lock: in memory, or in a file that several processes share."""

    def __init__(self, path):
        self.file = os.open(path, os.O_RDWR) if path else None
        self.last = (1 << 63).to_bytes(8, "little")

    def read(self):
        return self.last if self.file is None else os.pread(self.file, 8, 0)

    def write(self, me):
        if self.file is None:
            self.last = me
        else:
            os.pwrite(self.file, me, 0)


class Task(threading.Thread):
    def __init__(self, me, turn):
        super().__init__(daemon=True)
        self.me, self.turn = me.to_bytes(8, "little"), turn
        self.acquired = self.handed = self.held = 0
        self.waits_since, self.waits = None, []

    def run(self):
        key, section = course["key"], int(course["section_us"]) / 1e6
        while True:
            self.waits_since = asked = time.monotonic()
            lock = acquire(key)
            won = time.monotonic()
            self.waits_since = None
            self.acquired += 1
            if self.turn.read() != self.me:
                self.handed += 1
                self.turn.write(self.me)
            if section:
                self.waits.append(int((won - asked) * 1e6))
                time.sleep(section)
            self.held += time.monotonic() - won
            lock.release()


def contend():
    first, turn = int(course["first"]), Turn(course["turn"])
    acquire(f"{course['key']}:warm:{first}").release()
    tasks = [Task(first + number, turn) for number in range(int(course["tasks"]))]
    ready()
    begin = time.monotonic()
    for task in tasks:
        task.start()
    time.sleep(int(course["milliseconds"]) / 1e3)
    now = time.monotonic()
    waits = [wait for task in tasks for wait in task.waits]
    unfinished = [task.waits_since for task in tasks if task.waits_since is not None]
    return {
        "acquired": [task.acquired for task in tasks],
        "handed": sum(task.handed for task in tasks),
        "held_s": sum(task.held for task in tasks),
        "seconds": now - begin,
        "waits_us": waits + [int((now - since) * 1e6) for since in unfinished],
    }


async def pair_async():
    client = redis.asyncio.Redis.from_url(course["url"])
    pairs, times = int(course["pairs"]), []
    for number in range(pairs * 11 // 10):
        if number == pairs // 10:
            ready()
            times.clear()
        begin = time.perf_counter()
        lock = client.lock(course["key"], timeout=30)
        assert await lock.acquire()
        await lock.release()
        times.append((time.perf_counter() - begin) * 1e6)
    times.sort()
    return {"p50_us": times[len(times) // 2], "p99_us": times[int(len(times) * 0.99)], "pairs": pairs}


async def parallel_async():
    client = redis.asyncio.Redis.from_url(course["url"])
    pairs = 0

    async def work(number):
        nonlocal pairs
        while True:
            lock = client.lock(f"{course['key']}:{number}", timeout=30)
            assert await lock.acquire()
            await lock.release()
            pairs += 1

    tasks = [asyncio.create_task(work(number)) for number in range(int(course["keys"]))]
    await asyncio.sleep(0.5)
    ready()
    begin, before = time.perf_counter(), pairs
    await asyncio.sleep(int(course["milliseconds"]) / 1000)
    return {"pairs_per_s": (pairs - before) / (time.perf_counter() - begin), "tasks": len(tasks)}


def end(figures):
    """Prints the figures and ends the process at once; operations still in flight no longer matter."""
    print(json.dumps(figures), flush=True)
    os._exit(0)


async def run_async():
    # Before the loop would cancel its tasks and wait for them: the library swallows cancellations.
    end(await {"pair": pair_async, "parallel": parallel_async}[workload]())


if contestant == "redis-py-asyncio":
    asyncio.run(run_async())
end({"pair": pair, "contend": contend}[workload]())
