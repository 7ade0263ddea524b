"""Blocks that end elsewhere than they began, or never."""

import asyncio
import contextlib
import gc
import threading
import weakref

import pytest
from conftest import at_rest, twin

import fencelock
from fencelock import InvalidArgumentError, LockLostError, NotHeldError


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
    lock = twin(client).lock(name)

    async def block():
        async with lock:
            yield

    async def main():
        entered = block()
        began = asyncio.create_task(anext(entered))
        await began
        assert await twin(client).lock(name).try_acquire() is None
        await asyncio.create_task(entered.aclose())
        await asyncio.to_thread(at_rest, client, name)

    asyncio.run(main())


def test_blocks_of_generators_end_as_what_they_are(client, name):
    lock = client.semaphore(name, 2)
    guards = {}

    @contextlib.contextmanager
    def block(who):
        with lock as guards[who]:
            yield

    def on_a_thread(act, *arguments):
        thread = threading.Thread(target=act, args=arguments)
        thread.start()
        thread.join()

    # The second one's thread ends the first.
    first, second = block("first"), block("second")
    on_a_thread(first.__enter__)
    entered, ended, over = threading.Event(), threading.Event(), threading.Event()

    def run():
        second.__enter__()
        first.__exit__(None, None, None)
        entered.set()
        over.wait()
        second.__exit__(None, None, None)
        ended.set()

    threading.Thread(target=run).start()
    assert entered.wait(10)
    assert (guards["first"].is_held, guards["second"].is_held) == (False, True)
    over.set()
    assert ended.wait(10)
    # And two of one thread, in the order in which they began.
    third, fourth = block("third"), block("fourth")
    third.__enter__()
    fourth.__enter__()
    third.__exit__(None, None, None)
    assert (guards["third"].is_held, guards["fourth"].is_held) == (False, True)
    fourth.__exit__(None, None, None)
    at_rest(client, name)


def test_blocks_of_async_generators_end_as_what_they_are(client, name):
    lock = twin(client).semaphore(name, 2)

    async def block():
        async with lock as guard:
            yield guard

    async def main():
        blocks = [block(), block()]
        guards = [await anext(one) for one in blocks]
        await blocks[0].aclose()
        assert [guard.is_held for guard in guards] == [False, True]
        await asyncio.create_task(blocks[1].aclose())
        await asyncio.to_thread(at_rest, client, name)

    asyncio.run(main())


def test_an_exit_stack_ends_the_blocks_of_its_thread(client, name):
    lock, lock_of_tasks = (of.semaphore(name, 3) for of in (client, twin(client)))

    async def main():
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(3):
                await stack.enter_async_context(lock_of_tasks)
        await asyncio.to_thread(at_rest, client, name)

    with contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(lock)
    at_rest(client, name)
    asyncio.run(main())


def test_whose_block_ends_is_not_guessed(client, name):
    lock = client.semaphore(name, 2)

    def on_a_thread(act):
        thread = threading.Thread(target=act)
        thread.start()
        thread.join()

    def enter():
        lock.__enter__()

    def leave():
        lock.__exit__(None, None, None)

    for _ in range(2):
        on_a_thread(enter)
    with pytest.raises(InvalidArgumentError, match="another thread entered this block"):
        leave()

    async def main():
        async def enter():
            await lock_of_tasks.__aenter__()

        async def leave():
            await lock_of_tasks.__aexit__(None, None, None)

        for _ in range(2):
            await asyncio.create_task(enter())
        with pytest.raises(InvalidArgumentError, match="another task entered this block"):
            await leave()

    lock_of_tasks = twin(client).semaphore(name + ":tasks", 2)
    asyncio.run(main())


def test_a_loop_that_is_closed_frees_what_its_tasks_hold(client, name):
    lock, loop = twin(client).lock(name), asyncio.new_event_loop()

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


def test_a_late_block_leaves_the_next_alone(client, name):
    lock = client.lock(name, ttl=1, renew=False)

    def change(verb, *words):
        return getattr(lock, verb)(*words)

    overtaken, left = threading.Event(), threading.Event()
    ends = []

    def late():
        change("__enter__")
        overtaken.wait(20)
        try:
            change("__exit__", None, None, None)
        except LockLostError as lost:
            ends.append(lost)
        left.set()

    def next_one():
        # The frame that enters is made where the other one's was.
        guard = change("__enter__")
        guard.extend(60)
        overtaken.set()
        left.wait(20)
        ends.append(guard.is_held)
        change("__exit__", None, None, None)

    threads = [threading.Thread(target=late), threading.Thread(target=next_one)]
    for thread in threads:
        thread.start()
        while not client.lock(name).inspect().holders:
            pass
    for thread in threads:
        thread.join()
    assert [type(end) for end in ends] == [LockLostError, bool], ends
    assert ends[0].fields["name"] == name
    assert ends[1], "the late one ended the block of the next"
    at_rest(client, name)


def test_a_late_block_of_a_task_leaves_the_next_alone(client, name):
    lock = twin(client).lock(name, ttl=1, renew=False)

    def change(verb, *words):
        return getattr(lock, verb)(*words)

    async def main():
        overtaken = asyncio.Event()

        async def late():
            async with contextlib.AsyncExitStack() as stack:
                await stack.enter_async_context(lock)
                with contextlib.suppress(asyncio.CancelledError):
                    await overtaken.wait()
                await overtaken.wait()

        async def next_one():
            async with contextlib.AsyncExitStack() as stack:
                guard = await stack.enter_async_context(lock)
                await guard.extend(60)
                overtaken.set()
                with pytest.raises(LockLostError):
                    await first
                return guard.is_held

        first = asyncio.create_task(late())
        while not (await twin(client).lock(name).inspect()).holders:
            await asyncio.sleep(0)
        assert await asyncio.create_task(next_one())

    asyncio.run(main())
    at_rest(client, name)


def test_a_guard_that_is_not_held_begins_no_block(client, name):
    begun = []
    guard = client.lock(name).acquire()
    with guard:
        begun.append("once")
    with pytest.raises(NotHeldError), guard:
        begun.append("given back")
    lost = client.lock(name, ttl=1, renew=False).acquire()
    lost.wait_lost()
    with pytest.raises(LockLostError), lost:
        begun.append("lost")
    lost.forget()

    async def main():
        guard = await twin(client).lock(name).acquire()
        async with guard:
            begun.append("in a task")
        with pytest.raises(NotHeldError):
            async with guard:
                begun.append("given back")
        lost = await twin(client).lock(name, ttl=1, renew=False).acquire()
        await lost.wait_lost()
        with pytest.raises(LockLostError):
            async with lost:
                begun.append("lost")
        lost.forget()

    asyncio.run(main())
    assert begun == ["once", "in a task"]
    at_rest(client, name)


def test_an_exit_stack_keeps_nothing_of_who_entered_it(client, name):
    class Big:
        pass

    lock, seen = twin(client).lock(name), []

    async def startup(stack):
        local = Big()
        seen.append(weakref.ref(local))
        await stack.enter_async_context(lock)

    async def main():
        async with contextlib.AsyncExitStack() as stack:
            await startup(stack)
            assert [kept for kept, _, _ in lock._blocks] == [None]
            assert seen[0]() is None

    asyncio.run(main())
    at_rest(client, name)


def test_a_lock_goes_with_the_frames_it_keeps(client, name):
    def wanders(lock):
        lock.__enter__()
        yield

    lock = client.lock(name)
    for _ in wanders(lock):
        pass
    gone = weakref.ref(lock)
    del lock
    with pytest.warns(fencelock.ForgottenGuardWarning, match="forgotten"):
        gc.collect()
    assert gone() is None
    at_rest(client, name)
