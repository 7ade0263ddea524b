"""Blocks that end elsewhere than they began, or never."""

import asyncio
import contextlib
import gc
import threading
import weakref

import pytest
from conftest import at_rest

from fencelock import InvalidArgument


def test_a_block_may_end_on_another_thread(client, name):
    lock = client.lock(name)

    @contextlib.contextmanager
    def block():
        with lock:
            yield

    entered = block()
    entered.__enter__()
    ends = threading.Thread(target=lambda: entered.__exit__(None, None, None))
    ends.start()
    ends.join()
    at_rest(client, name)


def test_a_block_may_end_in_another_task(client, name):
    lock = client.lock(name)

    async def block():
        async with lock:
            yield

    async def main():
        entered = block()
        began = asyncio.create_task(anext(entered))
        await began
        assert await client.lock(name).try_acquire_async() is None
        await asyncio.create_task(entered.aclose())
        await asyncio.to_thread(at_rest, client, name)

    asyncio.run(main())


def test_whose_block_ends_is_not_guessed(client, name):
    lock = client.permits(name, 2)

    def on_a_thread(act):
        thread = threading.Thread(target=act)
        thread.start()
        thread.join()

    for _ in range(2):
        on_a_thread(lock.__enter__)
    with pytest.raises(InvalidArgument, match="another thread entered this block"):
        lock.__exit__(None, None, None)

    async def main():
        for _ in range(2):
            await asyncio.create_task(lock_of_tasks.__aenter__())
        with pytest.raises(InvalidArgument, match="another task entered this block"):
            await lock_of_tasks.__aexit__(None, None, None)

    lock_of_tasks = client.permits(name + ":tasks", 2)
    asyncio.run(main())


def test_a_loop_that_is_closed_frees_what_its_tasks_hold(client, name):
    lock, loop = client.lock(name), asyncio.new_event_loop()

    async def hold(entered):
        async with lock as guard:
            entered.set_result(weakref.ref(guard))
            await asyncio.sleep(1000)

    entered = loop.create_future()
    holds = loop.create_task(hold(entered))
    # Nobody will ever tell how it ended.
    holds._log_destroy_pending = False
    guard = loop.run_until_complete(entered)
    assert guard().is_held
    loop.close()
    del holds, loop, entered
    gc.collect()
    assert guard() is None
    at_rest(client, name)
