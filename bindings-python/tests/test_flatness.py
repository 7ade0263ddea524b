"""A hundred thousand pairs leave nothing behind."""

import json
import subprocess
import sys

import pytest
from conftest import scaled

pytestmark = pytest.mark.full

PAIRS = scaled(100_000)

# For all pairs together. 64 bytes that were lost with each would be 6,400,000 in full, and 640,000 at a tenth: the native heap and
# the interpreter's, which are counted by what is in use, see them in both, and the process as a whole in full.
SLACK = {"resident": 2 * 2**20, "native": 256 * 2**10, "objects": 200, "files": 0, "tasks": 0, "threads": 0, "load": 0, "coroutines": 0}

LIFE = """
import asyncio, ctypes, gc, json, os, sys, threading, time, fencelock.asyncio

url, way, pairs = sys.argv[1], sys.argv[2], int(sys.argv[3])
# A client remembers its last thousand ends, and caches have a size.
WARM = 5_000

class Heap(ctypes.Structure):
    words = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(word, ctypes.c_size_t) for word in words.split()]

heap = ctypes.CDLL(None).mallinfo2
heap.restype = Heap

def possessions(client):
    gc.collect()
    native = heap()
    with open("/proc/self/statm") as file:
        # Without what is shared with files: pages of the program come as they are first run.
        resident, shared = map(int, file.read().split()[1:3])
    files, tasks = (len(os.listdir(f"/proc/self/{what}")) for what in ("fd", "task"))
    return {
        "resident": (resident - shared) * os.sysconf("SC_PAGESIZE"),
        "native": native.uordblks + native.hblkhd,
        "objects": sys.getallocatedblocks(),
        "files": files,
        "tasks": tasks,
        "threads": threading.active_count(),
        "load": sum(client.stats().values()),
    }

def afterwards(client, before):
    # What is still under way is not kept: SQLite's log is written back beside the steps, over a file of its own and on a thread
    # that goes after ten idle seconds.
    give_up = time.monotonic() + 15
    while True:
        after = possessions(client)
        if all(after[what] <= before[what] for what in ("files", "tasks", "load")) or time.monotonic() > give_up:
            return after
        time.sleep(0.05)

def told(before, after, coroutines):
    print(json.dumps([before, {**after, "coroutines": coroutines}]))

def threads():
    with fencelock.connect(url) as client:
        lock = client.lock("flat")

        def take(count):
            for _ in range(count):
                with lock:
                    pass

        take(WARM)
        before = possessions(client)
        take(pairs)
        told(before, afterwards(client, before), 0)

async def coroutines():
    async with fencelock.asyncio.connect(url) as client:

        async def take(number, count):
            lock = client.lock(f"flat:{number}")
            for _ in range(count):
                async with lock:
                    pass

        async def all_of_them(count):
            await asyncio.gather(*(take(number, count // 32) for number in range(32)))

        await all_of_them(WARM)
        before = possessions(client)
        await all_of_them(pairs)
        told(before, afterwards(client, before), len(asyncio.all_tasks()) - 1)

threads() if way == "threads" else asyncio.run(coroutines())
"""
"""Tells what it has before and after so many pairs."""


@pytest.mark.parametrize("way", ["threads", "coroutines"])
def test_pairs_leave_nothing(url, way):
    words = [sys.executable, "-c", LIFE, url, way, str(PAIRS)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=600)
    assert (ended.returncode, ended.stderr) == (0, "")
    before, after = json.loads(ended.stdout)
    grown = {what: after[what] - before.get(what, 0) for what in SLACK}
    print(grown)
    assert {what: much for what, much in grown.items() if much > SLACK[what]} == {}, (before, after)
    assert after["load"] == after["coroutines"] == 0
