"""Children of forks: a new client there, inert guards, and the parent keeps what it has."""

import asyncio
import multiprocessing
import os
import subprocess
import sys
import threading
import time

import pytest
from conftest import at_rest, drawn, scaled, twin

import fencelock.asyncio

pytestmark = pytest.mark.full

# The ways a child comes to be, and what its parent is doing.
WAYS = ["os.fork", "fork", "forkserver", "spawn"]
DOING = ["idle", "holding", "acquiring", "queued"]
# Since 3.12 CPython itself warns of every fork beside threads.
QUIET = ["-W", "ignore:This process:DeprecationWarning"]


def child(url, name, client, guard):
    """The work of a child; raises if anything is not as it should be."""
    if guard is not None:
        assert not guard.is_held and guard.remaining == 0
        assert guard.release() is fencelock.Released.ALREADY_LOST
    client = client or fencelock.connect(url)
    with client.lock(f"{name}:child", wait=5) as own:
        assert own.is_held and own.token > 0

    async def awaited():
        async with twin(client).lock(f"{name}:child", wait=5) as own:
            assert own.is_held

    asyncio.run(awaited())


def fresh(url, name):
    """The child of a way that inherits nothing."""
    child(url, name, None, None)


def in_os_fork(act):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            act()
            code = 0
        except BaseException as error:
            print(f"in the child: {error!r}", file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    give_up = time.monotonic() + 20
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            assert status == 0, f"the child ended with {status}"
            return
        assert time.monotonic() < give_up, "the child hangs"
        time.sleep(0.002)


def in_process(way, act, *words):
    process = multiprocessing.get_context(way).Process(target=act, args=words)
    process.start()
    process.join(20)
    hangs = process.is_alive()
    process.kill()
    assert not hangs, "the child hangs"
    assert process.exitcode == 0


def queued(client, name):
    """Waits until somebody waits for the lock."""
    give_up = time.monotonic() + 10
    while not client.lock(name).inspect().waiters:
        assert time.monotonic() < give_up, "nobody waits"


CELLS = [("redis", way, doing) for way in WAYS for doing in DOING]
CELLS += [("sqlite", way, doing) for way in ("os.fork", "fork") for doing in DOING]


@pytest.mark.parametrize(("shared_url", "way", "doing"), CELLS, indirect=["shared_url"])
def test_a_child_works_and_the_parent_keeps_its_lock(shared_url, name, way, doing):
    with fencelock.connect(shared_url, ttl=2) as client, fencelock.connect(shared_url) as before:
        guard = client.lock(name).acquire() if doing == "holding" else None
        held = before.lock(f"{name}:busy").acquire() if doing == "queued" else None
        stop, acquired = threading.Event(), 0

        def acquire():
            nonlocal acquired
            while not stop.is_set():
                with client.lock(f"{name}:busy"):
                    acquired += 1

        async def queue():
            nonlocal acquired
            async with twin(client).lock(f"{name}:busy", wait=60):
                acquired += 1

        other = threading.Thread(target=acquire if doing == "acquiring" else lambda: asyncio.run(queue()))
        if doing in ("acquiring", "queued"):
            other.start()
        if held is not None:
            queued(before, f"{name}:busy")
        for _ in range(scaled(50)):
            if way == "os.fork":
                in_os_fork(lambda: child(shared_url, name, client, guard))
            elif way == "fork":
                in_process(way, child, shared_url, name, client, guard)
            else:
                in_process(way, fresh, shared_url, name)
            if guard is not None:
                assert guard.is_held and client.lock(name).inspect().holder.token == guard.token
        stop.set()
        if held is not None:
            assert len(before.lock(f"{name}:busy").inspect().waiters) == 1
            held.release()
        if doing in ("acquiring", "queued"):
            other.join()
            assert acquired > 0
        if guard is not None:
            time.sleep(2.5)
            assert guard.is_held, "it is renewed after the forks as before"
            guard.release()
        at_rest(client, name)
        at_rest(client, f"{name}:busy")


@pytest.mark.parametrize("shared_url", ["redis", "sqlite"], indirect=True)
def test_a_fork_inside_a_running_event_loop(shared_url, name):
    async def main():
        async with fencelock.asyncio.connect(shared_url, ttl=2) as client, fencelock.asyncio.connect(shared_url) as before:
            held = await before.lock(f"{name}:busy").acquire()
            waits = asyncio.create_task(client.lock(f"{name}:busy", wait=60).acquire())
            await asyncio.to_thread(queued, twin(before, fencelock), f"{name}:busy")
            async with client.lock(name) as guard:

                def inside():
                    assert not guard.is_held and guard.remaining == 0
                    # A loop of its own gives nothing of its parent's back.
                    assert asyncio.run(guard.release()) is fencelock.Released.ALREADY_LOST
                    child(shared_url, name, twin(client, fencelock), None)

                for _ in range(scaled(50)):
                    in_os_fork(inside)
                    assert guard.is_held
                await held.release()
                own = await waits
                await asyncio.sleep(2.5)
                assert guard.is_held and own.is_held, "they are renewed after the forks as before"
                for lock, kept in ((name, guard), (f"{name}:busy", own)):
                    assert (await before.lock(lock).inspect()).holder.token == kept.token
                await own.release()
            for lock in (name, f"{name}:busy", f"{name}:child"):
                await asyncio.to_thread(at_rest, client, lock)

    asyncio.run(main())


CHILDREN = """
import os, sys, fencelock

url, name, leave = sys.argv[1:]
client = fencelock.connect(url).open()
guard = client.lock(name).acquire()
pid = os.fork()
if pid == 0:
    if leave in ("used", "exit"):
        kept = client.lock(f"{name}:child").acquire()
    if leave == "exit":
        sys.exit(0)
    if leave == "os._exit":
        os._exit(0)
else:
    _, status = os.waitpid(pid, 0)
    assert status == 0, status
    assert guard.is_held and client.lock(name).inspect().holder.token == guard.token
    # What the child held itself was freed at its end.
    client.lock(f"{name}:child").acquire(wait=1).release()
    guard.release()
    print("kept", flush=True)
"""
"""Forks while it holds a lock; the child leaves in one way or another: as interpreters do, but for `os._exit`."""


@pytest.mark.parametrize("leave", ["return", "used", "exit", "os._exit"])
@pytest.mark.parametrize("shared_url", ["redis", "sqlite"], indirect=True)
def test_a_child_that_ends_frees_no_lock_of_its_parent(shared_url, name, leave):
    words = [sys.executable, *QUIET, "-c", CHILDREN, shared_url, name, leave]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=20)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "kept\n", ""), ended


def test_a_block_that_forks_gives_back_in_the_parent_only(redis_url, name):
    with fencelock.connect(redis_url) as client:
        with client.lock(name) as guard:
            pid = os.fork()
            if pid != 0:
                os.waitpid(pid, 0)
                assert guard.is_held
        if pid == 0:
            os._exit(0)
        at_rest(client, name)


PRELOADED = """
import os, signal, subprocess, sys, time, fencelock

url, name, state = sys.argv[1:]
client = fencelock.connect(url, ttl=2)
lock = client.lock(name + ":counter", wait=20)
kept = None
if state == "opened":
    client.open()
if state == "holding":
    kept = client.lock(name).acquire()

def work():
    for _ in range(25):
        with lock:
            seen = client.version(name + ":count").read()
            client.version(name + ":count").compare_and_set(seen and seen.version, (seen.value if seen else 0) + 1)
    with client.lock(f"{name}:{os.getpid()}") as own:
        holder = client.lock(f"{name}:{os.getpid()}").inspect().holder
        assert own.is_held and holder.token == own.token and holder.info["pid"] == os.getpid(), holder
        os.write(done, b"x")
        # As workers of servers beat: a signal that comes right before a `pause` ends it not.
        while True:
            time.sleep(0.05)

told, done = os.pipe()
workers = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        try:
            work()
        except Exception:
            os.write(done, b"!")
            raise
    workers.append(pid)
os.close(done)
ready = b""
while len(ready) < 4 and (more := os.read(told, 4)):
    ready += more
for pid in workers:
    os.kill(pid, signal.SIGTERM)
assert [os.waitpid(pid, 0)[1] for pid in workers] == [0] * 4 and ready == b"xxxx", ready
for pid in workers:
    client.lock(f"{name}:{pid}").acquire(wait=1).release()
assert client.version(name + ":count").read().value == 100
if kept is not None:
    assert kept.is_held and client.lock(name).inspect().holder.token == kept.token
    kept.release()
print("counted", flush=True)
"""
"""A server that loads its application before it forks workers, all of them at once; they count under one lock."""


@pytest.mark.parametrize("state", ["unopened", "opened", "holding"])
@pytest.mark.parametrize("shared_url", ["redis", "sqlite"], indirect=True)
def test_workers_forked_at_once_share_a_client_made_before(shared_url, name, state):
    words = [sys.executable, *QUIET, "-c", PRELOADED, shared_url, name, state]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "counted\n", ""), ended


WINDOWS = """
import os, random, sys, threading, time, fencelock

window, url, name, seed = sys.argv[1:]
draw = random.Random(int(seed))

def work():
    # The first client of the process opens, and then others use the same name all the time.
    while True:
        with fencelock.connect(url) as client:
            while not stop.is_set():
                with client.lock(name, wait=20):
                    pass
                if window == "leaving":
                    break

stop = threading.Event()
threads = [threading.Thread(target=work, daemon=True) for _ in range(1 if window == "opening" else 3)]
if window != "opening":
    # Nobody forks before they are at work.
    begun = fencelock.connect(url).open()
for thread in threads:
    thread.start()
time.sleep(draw.uniform(0.0003, 0.006))
for _ in range(1 if window == "opening" else 20):
    pid = os.fork()
    if pid == 0:
        # Whatever the threads of its parent were at: the child opens, waits no longer than it said, and ends.
        try:
            with fencelock.connect(url) as client, client.lock(f"{name}:child", wait=5):
                pass
            client = fencelock.connect(url).open()
            if url.startswith("memory"):
                client.lock(name).acquire(wait=5).release()
        except fencelock.LockTimeoutError:
            pass
        os._exit(0)
    give_up = time.monotonic() + 20
    while not os.waitpid(pid, os.WNOHANG)[0]:
        if time.monotonic() > give_up:
            os.kill(pid, 9)
            os._exit(9)
        time.sleep(0.0005)
os._exit(0)
"""
"""Forks while other threads are in the middle of what a child needs, too."""


@pytest.mark.parametrize("window", ["opening", "working", "leaving"])
@pytest.mark.parametrize("url", ["memory", "sqlite", "redis"], indirect=True)
def test_no_child_waits_for_what_a_thread_of_its_parent_was_at(window, url, name):
    seeds = drawn()
    for _ in range(12 if window == "opening" else scaled(100)):
        words = [sys.executable, *QUIET, "-c", WINDOWS, window, url, name, str(seeds.randrange(1_000_000))]
        ended = subprocess.run(words, capture_output=True, text=True, timeout=600)
        assert (ended.returncode, ended.stderr) == (0, ""), (words, ended)
