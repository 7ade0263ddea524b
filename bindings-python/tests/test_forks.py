"""Children of forks: a new client there, inert guards, and the parent keeps what it has."""

import asyncio
import multiprocessing
import os
import sys
import threading
import time

import pytest
from conftest import at_rest, scaled

import fencelock

# The ways a child comes to be, and what its parent is doing.
WAYS = ["os.fork", "fork", "forkserver", "spawn"]
DOING = ["idle", "holding", "acquiring"]


def child(url, name, client, guard):
    """What a child does; raises if anything is not as it should be."""
    if guard is not None:
        assert not guard.is_held and guard.remaining == 0
        assert guard.release() is fencelock.Released.ALREADY_LOST
    client = client or fencelock.connect(url)
    with client.lock(f"{name}:child", wait=5) as own:
        assert own.is_held and own.token > 0

    async def awaited():
        async with client.lock(f"{name}:child", wait=5) as own:
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


@pytest.mark.parametrize("doing", DOING)
@pytest.mark.parametrize("way", WAYS)
def test_a_child_works_and_the_parent_keeps_its_lock(redis_url, name, way, doing):
    with fencelock.connect(redis_url, ttl=2) as client:
        guard = client.lock(name).acquire() if doing == "holding" else None
        stop, acquired = threading.Event(), 0

        def acquire():
            nonlocal acquired
            while not stop.is_set():
                with client.lock(f"{name}:busy"):
                    acquired += 1

        other = threading.Thread(target=acquire)
        if doing == "acquiring":
            other.start()
        for _ in range(scaled(50)):
            if way == "os.fork":
                in_os_fork(lambda: child(redis_url, name, client, guard))
            elif way == "fork":
                in_process(way, child, redis_url, name, client, guard)
            else:
                in_process(way, fresh, redis_url, name)
            if guard is not None:
                assert guard.is_held and client.lock(name).inspect().holder.token == guard.token
        stop.set()
        if doing == "acquiring":
            other.join()
            assert acquired > 0
        if guard is not None:
            time.sleep(2.5)
            assert guard.is_held, "it is renewed after the forks as before"
            guard.release()
        at_rest(client, name)


def test_a_child_that_ends_frees_no_lock_of_its_parent(redis_url, name):
    with fencelock.connect(redis_url) as client, client.lock(name) as guard:
        for leave in (lambda: os._exit(0), lambda: sys.exit(0)):
            pid = os.fork()
            if pid == 0:
                try:
                    leave()
                finally:
                    os._exit(0)
            os.waitpid(pid, 0)
        assert guard.is_held and client.lock(name).inspect().holder.token == guard.token


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
