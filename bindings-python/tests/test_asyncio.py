"""The package for coroutines."""

import asyncio
import gc
import subprocess
import sys
import time
import warnings

import pytest
from conftest import at_rest, soon, twin

import fencelock.asyncio
from fencelock import LockLostError, LockTimeoutError, Released


def run(main):
    """Runs a coroutine; what nobody awaited or retrieved fails the test."""

    async def watched():
        unheard = []
        asyncio.get_running_loop().set_exception_handler(lambda _, told: unheard.append(told))
        result = await main
        gc.collect()
        await asyncio.sleep(0)
        assert not unheard, unheard
        return result

    return asyncio.run(watched())


def test_a_block_holds_the_lock(url, name):
    async def main():
        async with fencelock.asyncio.connect(url) as client:
            lock = client.lock(name, ttl=5)
            async with lock as guard:
                assert guard.is_held and await lock.try_acquire() is None
                await guard.extend(10)
                assert guard.remaining > 5
            assert not guard.is_held
            guard = await lock.acquire()
            assert await guard.release() is Released.RELEASED
            with pytest.raises(LockTimeoutError):
                async with lock:
                    await lock.acquire(wait=0.05)
            return client

    run(main())


def test_the_body_is_cancelled_when_the_lock_is_lost(url, name):
    async def main():
        async with fencelock.asyncio.connect(url) as client:
            began = time.monotonic()
            with pytest.raises(LockLostError):
                async with client.lock(name, ttl=1, renew=False):
                    await asyncio.sleep(30)
            assert time.monotonic() - began < soon(5)
            assert asyncio.current_task().cancelling() == 0
            with pytest.raises(ZeroDivisionError) as raised:
                async with client.lock(name, ttl=1, renew=False):
                    try:
                        await asyncio.sleep(30)
                    except asyncio.CancelledError:
                        raise ZeroDivisionError from None
            assert ["the lock was lost by then" in note for note in raised.value.__notes__] == [True]
            # Nothing of it is left in the task.
            await asyncio.sleep(0.01)

    run(main())


def test_a_cancellation_from_outside_stays_one(url, name):
    async def main():
        async with fencelock.asyncio.connect(url) as client:
            entered = asyncio.Event()

            async def body():
                async with client.lock(name):
                    entered.set()
                    await asyncio.sleep(30)

            task = asyncio.create_task(body())
            await entered.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with client.lock(name, wait=soon(1)):
                pass
            with pytest.raises(TimeoutError) as told:
                async with client.lock(name), asyncio.timeout(0.05):
                    await asyncio.sleep(30)
            assert not isinstance(told.value, LockTimeoutError)

    run(main())


def test_many_tasks_share_one_lock_object(client, name):
    async def main():
        lock, inside, most = twin(client).lock(name), 0, 0

        async def work():
            nonlocal inside, most
            for _ in range(5):
                async with lock:
                    inside += 1
                    most = max(most, inside)
                    await asyncio.sleep(0)
                    inside -= 1

        await asyncio.gather(*(work() for _ in range(32)))
        assert most == 1 and not lock._blocks

    run(main())


def test_threads_and_coroutines_exclude_each_other(client, name):
    async def main():
        async with twin(client).lock(name):
            assert await asyncio.to_thread(client.lock(name).try_acquire) is None

    run(main())
    with client.lock(name):
        assert run(twin(client).lock(name).try_acquire()) is None


def test_a_client_outlives_its_loops(client, name):
    async def main():
        async with twin(client).lock(name) as guard:
            return guard.token

    assert run(main()) < run(main())


def test_a_forgotten_guard_is_released_and_warned_about(client, name):
    async def main():
        guard = await twin(client).lock(name).acquire()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            del guard
        assert [warning.message.name for warning in told if warning.category is fencelock.ForgottenGuardWarning] == [name]

    run(main())
    at_rest(client, name)


def test_elections_jobs_and_versions(client, name):
    client = twin(client)

    async def main():
        election = client.election(name, observe=0.05)
        seen = election.observe()
        assert await anext(seen) is None
        async with election as guard:
            assert (await anext(seen)).token == guard.token
        async with await client.job(name + ":job", period=60).start(at=1_700_000_000) as one:
            assert one.instant == 1_700_000_000
            late = await client.job(name + ":job", period=60).start(at=1_700_000_060)
            assert (late.reason, late.last.token) == ("running", one.token)
        assert (await client.job(name + ":job", period=60).inspect()).status == "succeeded"
        version = client.version(name + ":balance")
        await asyncio.gather(*(version.update(lambda seen: (seen or 0) + 1) for _ in range(5)))
        assert (await version.read()).value == 5

    run(main())


def test_a_loop_that_is_closed_gives_up_what_it_waits_for(url, client, name):
    with fencelock.connect(url) as other, other.lock(name):
        loop = asyncio.new_event_loop()
        waits = loop.create_task(twin(client).lock(name).acquire())
        # Nobody will ever tell how it ended.
        waits._log_destroy_pending = False
        give_up = time.monotonic() + soon(5)
        while not client.lock(name).inspect().waiters:
            assert time.monotonic() < give_up
            loop.run_until_complete(asyncio.sleep(0.01))
        loop.close()
        del waits, loop
        gc.collect()
        while client.lock(name).inspect().waiters:
            assert time.monotonic() < give_up + soon(5), "its ticket is still there"
            time.sleep(0.01)
    at_rest(client, name)


AWAITS = """
import asyncio, os, time
# Both threads on one core: what it costs to wake another one that sleeps is the machine's.
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import fencelock.asyncio
from fencelock import _loop, _native

async def main():
    async with fencelock.asyncio.connect("memory:") as client:
        connection, loop, executor = await client._link.open_async(), _loop.current(), asyncio.get_running_loop().run_in_executor

        request = _native.Request('{"op":"leader","name":"nobody"}')

        async def least(ask):
            rounds = []
            for _ in range(10):
                began = time.process_time()
                for _ in range(500):
                    await ask()
                rounds.append((time.process_time() - began) / 500)
            return min(rounds)

        ours = await least(lambda: loop.call(connection.submit(loop.pump, request)))
        print(ours, await least(lambda: executor(None, int)))

asyncio.run(main())
"""
"""Tells what an await takes of a processor, in seconds, and what one of the standard library's threads does."""


@pytest.mark.full
def test_an_await_takes_less_than_one_of_a_thread_of_the_standard_library():
    ended = subprocess.run([sys.executable, "-c", AWAITS], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    ours, threads = map(float, ended.stdout.split())
    print(f"{1e6 * ours:.1f} µs, {1e6 * threads:.1f} by a thread")
    assert ours < threads


def test_a_call_that_waits_is_refused_in_a_loop(client, name):
    held, run_of_job = client.lock(name).acquire(), client.job(f"{name}:job", 60).start(at=1_700_000_000)

    async def main():
        lock, seen = client.lock(name), client.election(name).observe()
        for refused in (
            lock.acquire,
            lambda: lock.acquire(wait=0),
            lock.try_acquire,
            lock.__enter__,
            lock.__aenter__,
            client.__aenter__,
            held.__aenter__,
            lock.inspect,
            client.open,
            client.all([name]).acquire,
            client.locked(name)(lambda: None),
            client.version(name).read,
            lambda: next(seen),
            lambda: held.extend(60),
            held.wait_lost,
        ):
            with pytest.raises(fencelock.InvalidArgumentError, match=r"event loop.*`import fencelock.asyncio as fencelock`"):
                refused()
        with pytest.raises(fencelock.LockTimeoutError):
            await asyncio.to_thread(lock.acquire, wait=0.1)
        # Nothing that ends a hold is refused.
        assert held.is_held and held.release() is Released.RELEASED
        assert run_of_job.succeed() is Released.RELEASED
        client.close()

    run(main())


def test_u27_nobody_waits_for_the_connects_of_others(name, silent_url):
    async def main():
        client = fencelock.asyncio.connect(silent_url, connect_timeout=0.3)
        asking = asyncio.create_task(client.lock(name).acquire(wait=600))
        pings = await asyncio.wait_for(asyncio.gather(*[client.ping() for _ in range(8)], return_exceptions=True), 20)
        assert all(isinstance(ping, fencelock.UnavailableError) for ping in pings), pings
        assert not asking.done()
        asking.cancel()
        await client.close()

    run(main())


def test_a_coroutine_outside_of_a_loop_says_so(client, name):
    with pytest.raises(fencelock.UnsupportedError, match="asyncio"):
        twin(client).lock(name).acquire().send(None)
