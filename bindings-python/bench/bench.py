"""The package on the bench's courses, by threads or by coroutines; bench/src/subject/mod.rs has the protocol."""

import asyncio
import json
import sys
import time

import fencelock.asyncio

way, workload, *words = sys.argv[1:]
course = dict(word.split("=", 1) for word in words)


def ready():
    print("ready", flush=True)
    sys.stdin.readline()


def figures(times):
    times.sort()
    at = lambda part: times[int((len(times) - 1) * part)] * 1e6  # noqa: E731
    return {"p50_us": at(0.5), "p99_us": at(0.99), "pairs": len(times)}


def pair(client):
    lock, times = client.lock(course["key"]), []
    for number in range(int(course["pairs"]) * 11 // 10):
        if number == int(course["pairs"]) // 10:
            ready()
            times.clear()
        begin = time.perf_counter()
        lock.acquire().release()
        times.append(time.perf_counter() - begin)
    return figures(times)


def crossing(client):
    """Measures the cost of a call into the core that only looks at a guard: the median of eleven rounds."""
    calls, rounds = range(200_000), []
    with client.lock("bench:crossing").acquire() as guard:
        ready()
        for _ in range(11):
            begin = time.perf_counter()
            for _ in calls:
                guard.is_held
            rounds.append((time.perf_counter() - begin) / len(calls))
    return {"crossing_us": sorted(rounds)[5] * 1e6}


async def pair_async(client):
    lock, times = client.lock(course["key"]), []
    for number in range(int(course["pairs"]) * 11 // 10):
        if number == int(course["pairs"]) // 10:
            ready()
            times.clear()
        begin = time.perf_counter()
        await (await lock.acquire()).release()
        times.append(time.perf_counter() - begin)
    return figures(times)


async def parallel_async(client):
    pairs = 0

    async def work(number):
        nonlocal pairs
        lock = client.lock(f"{course['key']}:{number}")
        while True:
            await (await lock.acquire()).release()
            pairs += 1

    tasks = [asyncio.create_task(work(number)) for number in range(int(course["keys"]))]
    await asyncio.sleep(0.1)
    ready()
    begin, before = time.perf_counter(), pairs
    await asyncio.sleep(int(course["milliseconds"]) / 1000)
    speed = (pairs - before) / (time.perf_counter() - begin)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return {"pairs_per_s": speed}


async def main():
    async with fencelock.asyncio.connect(course["url"]) as client:
        return await {"pair": pair_async, "parallel": parallel_async}[workload](client)


if way == "sync":
    with fencelock.connect(course["url"]) as client:
        figures = {"pair": pair, "crossing": crossing}[workload](client)
else:
    figures = asyncio.run(main())
print(json.dumps(figures), flush=True)
