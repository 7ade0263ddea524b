"""Coroutines and generators that are closed inside a block: nobody may wait there, and nothing is left."""

import asyncio
import contextlib
import gc
import sys
import threading
import time
import types

import pytest
from conftest import at_rest, leftovers, soon, twin

import fencelock.asyncio

AT = 1_700_000_000


class Blocks:
    """Coroutines that stay in a block of each sort until they are closed."""

    def __init__(self, url, client, name):
        self.url, self.client, self.name, self.ends = url, twin(client), name, []

    async def stay(self, entered):
        try:
            entered.set()
            # What only this waits for is collected with it.
            await asyncio.get_running_loop().create_future()
        except BaseException as error:
            self.ends.append(type(error))
            raise

    async def lock(self, entered):
        async with self.client.lock(self.name):
            await self.stay(entered)

    async def guards_own(self, entered):
        async with await self.client.lock(self.name).acquire():
            await self.stay(entered)

    async def all_of_them(self, entered):
        async with self.client.all([self.name, self.name + ":too"]):
            await self.stay(entered)

    async def permits(self, entered):
        async with self.client.semaphore(self.name, 1):
            await self.stay(entered)

    async def leads(self, entered):
        async with self.client.election(self.name):
            await self.stay(entered)

    async def reentrant(self, entered):
        lock = self.client.reentrant(self.name)
        async with lock, lock:
            await self.stay(entered)

    async def scope(self, entered):
        scope = self.client.scope()
        async with scope.lock(self.name), scope.lock(self.name):
            await self.stay(entered)

    async def exit_stack(self, entered):
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(self.client.lock(self.name))
            await self.stay(entered)

    async def decorated(self, entered):
        await self.client.lock(self.name)(self.stay)(entered)

    async def locked(self, entered):
        await self.client.locked(self.name)(self.stay)(entered)

    async def run(self, entered):
        async with await self.client.job(self.name + ":job", 60).start(AT):
            await self.stay(entered)

    async def clients_own(self, entered):
        async with fencelock.asyncio.connect(self.url) as client, client.lock(self.name):
            await self.stay(entered)

    async def clients_end(self, entered):
        async with fencelock.asyncio.connect(self.url) as client:
            await client.lock(self.name).acquire()
            await self.stay(entered)

    async def generator(self, entered):
        async for _ in self.yielding(entered):
            pass

    async def generators_yield(self, entered):
        async for _ in self.yielding(None):
            await self.stay(entered)

    async def yielding(self, entered):
        async with self.client.lock(self.name):
            if entered is not None:
                await self.stay(entered)
            yield


SORTS = [sort for sort in vars(Blocks) if not sort.startswith("_") and sort not in ("stay", "yielding")]
if sys.version_info < (3, 13):
    # Such a generator is left where it is, without an end.
    SORTS.remove("generator")


def in_this_thread(act):
    act()


def in_another_thread(act):
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


@types.coroutine
def begin(coroutine, entered):
    """Runs a coroutine in the task that awaits this, until it has entered."""
    while True:
        awaited = coroutine.send(None)
        if entered.is_set():
            return coroutine
        yield awaited


async def close(coroutine, entered):
    """Its end, when it has entered."""
    return (await begin(coroutine, entered)).close


async def collect(coroutine, entered):
    """The same for a task that everybody has forgotten."""
    task = asyncio.get_running_loop().create_task(coroutine)
    await asyncio.wait_for(entered.wait(), soon(5))
    # Which asyncio would tell of.
    task._log_destroy_pending = False
    return gc.collect


ENDS = [(sort, end) for sort in SORTS for end in (close, collect)]


@pytest.mark.parametrize("thread", [in_this_thread, in_another_thread])
@pytest.mark.parametrize(("sort", "end"), ENDS)
def test_a_closed_coroutine_gives_back(url, client, name, monkeypatch, sort, end, thread):
    unraisable, unheard = [], []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: unraisable.append(repr(told)))

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda _, told: unheard.append(told))
        blocks, entered = Blocks(url, client, name), asyncio.Event()
        thread(await end(getattr(blocks, sort)(entered), entered))
        gone = time.monotonic()
        # Of a generator that is collected its loop is told.
        while not blocks.ends:
            assert time.monotonic() < gone + soon(1)
            await asyncio.sleep(0)
        assert blocks.ends == [GeneratorExit]
        async with fencelock.asyncio.connect(url) as other:
            for lock in (name, name + ":too"):
                while (await other.lock(lock).inspect()).holders:
                    assert time.monotonic() < gone + soon(1)
            # As of any block that raises.
            while sort == "run" and (run := await other.job(name + ":job", 60).inspect()).status != "failed":
                assert run.status == "in_progress" and time.monotonic() < gone + soon(1)
        await asyncio.to_thread(at_rest, client, name)

    asyncio.run(main())
    gc.collect()
    assert (unraisable, unheard, leftovers(url, name)) == ([], [], [])


def test_a_closed_coroutine_that_waits_leaves_nothing(url, client, name, monkeypatch):
    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: unraisable.append(repr(told)))

    async def main():
        async def wait():
            async with twin(client).lock(name):
                raise AssertionError("somebody else has it")

        async with fencelock.asyncio.connect(url) as other, other.lock(name):
            await twin(client).open()
            for turns in range(20):
                entered, coroutine = asyncio.Event(), wait()
                entered.set()
                await begin(coroutine, entered)
                # Before it has a ticket, and after that.
                for _ in range(turns % 4):
                    await other.lock(name).inspect()
                coroutine.close()
                gone = time.monotonic()
                while (await other.lock(name).inspect()).waiters:
                    assert time.monotonic() < gone + soon(1)
        await asyncio.to_thread(at_rest, client, name)

    asyncio.run(main())
    assert (unraisable, leftovers(url, name)) == ([], [])


@pytest.mark.parametrize("end", ["close", "collect"])
def test_a_closed_async_generator_gives_back(url, client, name, monkeypatch, end):
    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: unraisable.append(repr(told)))

    async def main():
        async def block():
            async with twin(client).lock(name) as guard:
                yield guard

        entered = block()
        guard = await anext(entered)
        if end == "close":
            await entered.aclose()
            assert not guard.is_held
        del entered
        # Its loop closes one that is collected.
        await asyncio.sleep(0)
        async with fencelock.asyncio.connect(url) as other:
            await (await other.lock(name).acquire(wait=soon(1))).release()
        await asyncio.to_thread(at_rest, client, name)

    asyncio.run(main())
    assert (unraisable, leftovers(url, name)) == ([], [])


def of_a_lock(client, name):
    with client.lock(name):
        yield


def of_a_guard(client, name):
    with client.lock(name).acquire():
        yield


def of_all(client, name):
    with client.all([name, name + ":too"]):
        yield


def of_an_election(client, name):
    with client.election(name):
        yield


def of_a_scope(client, name):
    lock = client.reentrant(name)
    with lock, lock:
        yield


def of_a_run(client, name):
    with client.lock(name), client.job(name + ":job", 60).start(AT):
        yield


GENERATORS = [of_a_lock, of_a_guard, of_all, of_an_election, of_a_scope, of_a_run]


@pytest.mark.parametrize("thread", [in_this_thread, in_another_thread])
@pytest.mark.parametrize("end", ["close", "collect"])
@pytest.mark.parametrize("generator", GENERATORS)
def test_a_closed_generator_gives_back(url, client, name, monkeypatch, generator, end, thread):
    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: unraisable.append(repr(told)))
    generators = [generator(client, name)]
    next(generators[0])
    assert client.lock(name).inspect().holders
    thread(generators[0].close if end == "close" else generators.clear)
    # A thread's release has been answered when its block is left.
    with fencelock.connect(url) as other:
        assert not other.lock(name).inspect().holders
        if generator is of_a_run:
            assert other.job(name + ":job", 60).inspect().status == "failed"
    at_rest(client, name)
    assert (unraisable, leftovers(url, name)) == ([], [])
