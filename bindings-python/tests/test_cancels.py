"""Cancels at any point of whatever can be awaited: nothing is left, and none is swallowed."""

import asyncio
import itertools
import time

import pytest
from conftest import at_rest, drawn, leftovers, listened, nobody_listens, scaled

import fencelock.asyncio
from fencelock import NotHeldError

pytestmark = pytest.mark.full

AT = 1_700_000_000
numbers = itertools.count()


class Storm:
    """The operations of its tasks on one lock and its like. The tasks keep here what they were granted, at once."""

    def __init__(self, url, name):
        self.url, self.name, self.kept, self.starts, self.ends = url, name, [], [], []

    async def acquire(self, client):
        self.kept.append(await client.lock(self.name).acquire())

    async def try_acquire(self, client):
        if (guard := await client.lock(self.name).try_acquire()) is not None:
            self.kept.append(guard)

    async def block(self, client):
        async with client.lock(self.name):
            await asyncio.sleep(0)

    async def decorated(self, client):
        await client.lock(self.name)(asyncio.sleep)(0)

    async def all_of_them(self, client):
        async with client.all([self.name, f"{self.name}:too"]):
            await asyncio.sleep(0)

    async def reentrant(self, client):
        lock = client.reentrant(self.name)
        async with lock, lock:
            await asyncio.sleep(0)

    async def release(self, client):
        await (await self.permit(client)).release()

    async def extend(self, client):
        await (await self.permit(client)).extend(60)

    async def wait_lost(self, client):
        await (await self.permit(client)).wait_lost()

    async def permit(self, client):
        self.kept.append(await client.semaphore(f"{self.name}:permits", 100).acquire())
        return self.kept[-1]

    async def read(self, client):
        self.kept.append(await client.read_lock(f"{self.name}:both").acquire())

    async def campaign(self, client):
        self.kept.append(await client.election(f"{self.name}:election").acquire())

    async def lead(self, client):
        async with client.election(f"{self.name}:election"):
            await client.election(f"{self.name}:election").leader()

    async def observe(self, client):
        async for _ in client.election(f"{self.name}:election").observe():
            pass

    async def start(self, client):
        job = f"{self.name}:job:{next(numbers)}"
        self.starts.append(job)
        self.kept.append(await client.job(job, 60).start(AT))
        self.starts.remove(job)

    async def end(self, client):
        job = f"{self.name}:job:{next(numbers)}"
        run = await client.job(job, 60).start(AT)
        self.kept.append(run)
        self.ends.append(job)
        await run.succeed()

    async def version(self, client):
        await client.version(f"{self.name}:version").update(lambda seen: (seen or 0) + 1)

    async def connect(self, client):
        del client
        async with fencelock.asyncio.connect(self.url) as own, own.lock(self.name):
            await asyncio.sleep(0)

    async def look(self, client):
        await client.lock(self.name).inspect()
        await client.names(self.name)


SORTS = sorted(sort for sort in vars(Storm) if not sort.startswith("_") and sort != "permit")


async def give_back(guard):
    """Whatever a task has got, unless it has given it back itself."""
    try:
        await (guard.fail() if isinstance(guard, fencelock.asyncio.Run) else guard.release())
    except NotHeldError:
        pass


async def round_of(storm, clients, draw):
    """Some tasks, each cancelled at some point. Answers how many were, and what those did who were reached in vain."""
    sorts = [draw.choice(SORTS) for _ in range(12)]
    tasks = [asyncio.create_task(getattr(storm, sort)(draw.choice(clients))) for sort in sorts]
    reached = []
    for task in tasks:
        # From before the request leaves to after the answer came.
        for _ in range(draw.randrange(4)):
            await asyncio.sleep(0)
        if draw.random() < 0.5:
            await asyncio.sleep(draw.random() * 0.001)
        reached.append(task.cancel())
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    each = zip(sorts, tasks, reached, strict=True)
    swallowed = [sort for sort, task, was_reached in each if was_reached and not task.cancelled()]
    failed = [ended for ended in ends if isinstance(ended, Exception)]
    assert not failed, failed
    await asyncio.gather(*map(give_back, storm.kept))
    storm.kept.clear()
    return sum(task.cancelled() for task in tasks), swallowed


def test_cancels_at_random_points_leave_nothing(url, name):
    listening = listened(url)

    async def main():
        draw, storm, cancelled = drawn(), Storm(url, name), 0
        async with fencelock.asyncio.connect(url) as client, fencelock.asyncio.connect(url) as other:
            # Few starts are cancelled where the store answers at once, so it goes on until one was.
            while cancelled < scaled(5000) or not storm.starts:
                assert cancelled < scaled(5000) * 50, "no start is ever cancelled"
                more, swallowed = await round_of(storm, (client, other), draw)
                cancelled += more
                assert not swallowed, "a task that is cancelled before it has ended ends as cancelled"
            for of in (client, other):
                for what in ("", ":too", ":permits", ":both", ":election"):
                    await asyncio.to_thread(at_rest, of, name + what)
            # A run whose start was cancelled is left to others.
            for job in storm.starts:
                give_up = time.monotonic() + 5
                while not (run := await other.job(job, 60).start(AT)):
                    assert time.monotonic() < give_up, f"nobody has the run of {job}"
                await run.succeed()
            # And one whose end was has ended as was said.
            told = {(await other.job(job, 60).inspect()).status for job in storm.ends}
            assert told == {"succeeded"}, told

    asyncio.run(main())
    assert leftovers(url, name) == []
    nobody_listens(url, listening)


def held(name):
    """The key that is there while the lock is used."""
    return f"fencelock:{{{name}}}:held:{name}".encode()


PLANTED = {
    "a hold": lambda client, name: client.lock(name).acquire(),
    "several": lambda client, name: client.all([name, name + ":too"]).acquire(),
    "a permit": lambda client, name: client.semaphore(name, 2).acquire(),
    "a reader": lambda client, name: client.read_lock(name).acquire(),
    "a writer": lambda client, name: client.write_lock(name).acquire(),
    "a leader": lambda client, name: client.election(name).acquire(),
}


@pytest.mark.parametrize("sort", PLANTED)
def test_a_leftover_is_seen(redis_url, name, sort):
    with fencelock.connect(redis_url) as client:
        planted = PLANTED[sort](client, name)
        seen = leftovers(redis_url, name)
        assert held(name) in seen
        if sort in ("a permit", "a reader", "a writer"):
            # The mark of its kind may be gone, and a hold be there yet.
            assert any(left.endswith(b" H") for left in seen)
        planted.release()
        assert leftovers(redis_url, name) == []


def test_a_ticket_that_is_left_is_seen(redis_url, name):
    listening = listened(redis_url)

    async def main():
        async with fencelock.asyncio.connect(redis_url) as client, fencelock.asyncio.connect(redis_url) as other, client.lock(name):
            waits = asyncio.create_task(other.lock(name).acquire())
            while not (await client.lock(name).inspect()).waiters:
                await asyncio.sleep(0)
            seen = [left.partition(b" ")[2][:1] for left in leftovers(redis_url, name)]
            assert sorted(seen) == [b"", b"q", b"w"] and listened(redis_url) - listening
            waits.cancel()
            while (await client.lock(name).inspect()).waiters:
                await asyncio.sleep(0)
            assert leftovers(redis_url, name) == [held(name)]

    asyncio.run(main())
    assert leftovers(redis_url, name) == []
    nobody_listens(redis_url, listening)
