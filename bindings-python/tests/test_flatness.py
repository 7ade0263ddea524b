"""What ten thousand pairs leave behind: nothing."""

import asyncio
import gc
import os
import threading

from conftest import at_rest, scaled

import fencelock

# What an allocator keeps and a counter rounds to.
SLACK_KIB = 2048


def resident():
    """The memory of this process in KiB."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def test_pairs_of_threads_leave_nothing(redis_url, name):
    with fencelock.connect(redis_url) as client:
        lock = client.lock(name)

        def pairs(count):
            for _ in range(count):
                with lock:
                    pass

        pairs(1000)
        before = resident(), descriptors(), threading.active_count()
        pairs(scaled(100_000))
        after = resident(), descriptors(), threading.active_count()
        assert after[0] - before[0] < SLACK_KIB and after[1:] == before[1:], (before, after)
        at_rest(client, name)


def test_pairs_of_coroutines_leave_nothing(redis_url, name):
    async def main():
        async with fencelock.connect(redis_url) as client:

            async def pairs(number, count):
                lock = client.lock(f"{name}:{number}")
                for _ in range(count):
                    async with lock:
                        pass

            async def all_pairs(count):
                await asyncio.gather(*(pairs(number, count // 32) for number in range(32)))

            await all_pairs(3200)
            before = resident(), descriptors(), len(asyncio.all_tasks())
            await all_pairs(scaled(100_000))
            after = resident(), descriptors(), len(asyncio.all_tasks())
            assert after[0] - before[0] < SLACK_KIB and after[1:] == before[1:], (before, after)
            await asyncio.to_thread(at_rest, client, f"{name}:0")

    asyncio.run(main())
