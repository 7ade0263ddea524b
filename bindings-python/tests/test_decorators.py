"""Functions and coroutines that run under a lock."""

import asyncio
import contextlib
import functools
import inspect
import os
import subprocess
import sys
import threading
from datetime import date
from pathlib import Path

import pytest
from conftest import at_rest, twin

import fencelock
from fencelock import InvalidArgumentError, LockTimeoutError


def decorators(client, name):
    """Each way to decorate, all of them with the same mutex."""
    return {"lock": client.lock(name), "all": client.all([name]), "locked": client.locked(name)}


WAYS = ["lock", "all", "locked"]


@pytest.mark.parametrize("way", WAYS)
def test_functions_run_under_the_lock(client, name, way):
    @decorators(client, name)[way]
    def report(day, *, again=False):
        """Reports."""
        assert client.lock(name).try_acquire() is None
        return day, again

    assert report("monday") == ("monday", False) and report(day="tuesday", again=True) == ("tuesday", True)
    assert (report.__name__, report.__doc__) == ("report", "Reports.")
    assert str(inspect.signature(report)) == "(day, *, again=False)"
    at_rest(client, name)


@pytest.mark.parametrize("way", WAYS)
def test_coroutines_run_under_the_lock(client, name, way):
    @decorators(twin(client), name)[way]
    async def report(day):
        assert await twin(client).lock(name).try_acquire() is None
        return day

    assert inspect.iscoroutinefunction(report) and asyncio.run(report("monday")) == "monday"
    at_rest(client, name)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_called_of_an_object_runs_under_the_lock(client, name, way):
    class Report:
        async def __call__(self, day):
            assert await twin(client).lock(name).try_acquire() is None
            return day

    assert asyncio.run(decorators(twin(client), name)[way](Report())("monday")) == "monday"


def test_an_election_decorates_what_its_leader_does(client, name):
    @client.election(name)
    def lead():
        return client.election(name).leader()

    assert lead().token > 0 and client.election(name).leader() is None


def test_the_name_may_name_the_arguments(client, name):
    @client.locked(name + ":{day}")
    def report(day="monday", *, again=False):
        assert client.lock(f"{name}:{day}").try_acquire() is None
        return client.lock(f"{name}:other").try_acquire()

    report().release()
    report(day="tuesday", again=True).release()


def test_a_call_may_be_the_run_of_a_job(client, name):
    job = client.job(name, period=315_360_000)

    @job
    def report(day):
        raise ValueError(day)

    @twin(client).job(name, period=315_360_000)
    async def again(day):
        return day

    with pytest.raises(ValueError, match="monday"):
        report("monday")
    assert (report("tuesday"), asyncio.run(again("tuesday"))) == (None, None)
    assert job.inspect().status == "failed"
    with pytest.raises(InvalidArgumentError, match="coroutine"):
        job(again)

    @twin(client).job(f"{name}:async", period=315_360_000)
    async def due(day):
        return day

    assert asyncio.run(due("monday")) == "monday"


def test_a_call_may_skip_a_lock_that_is_held(client, name):
    @client.locked(name, on_busy="skip")
    def work():
        return work()

    @twin(client).locked(name, on_busy="skip")
    async def work_async():
        return await work_async() or "done"

    assert work() is None and asyncio.run(work_async()) == "done"
    with client.lock(name):
        assert asyncio.run(work_async()) is None
    with pytest.raises(InvalidArgumentError, match="on_busy"):
        client.locked(name, on_busy="fail")


def test_calls_of_threads_exclude_each_other(client, name):
    inside = most = 0

    @client.lock(name)
    def work():
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        # It lets the others run.
        client.names("none")
        inside -= 1

    threads = [threading.Thread(target=lambda: [work() for _ in range(10)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    at_rest(client, name)


def test_calls_of_tasks_exclude_each_other(client, name):
    inside = most = 0

    @twin(client).lock(name)
    async def work():
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1

    async def main():
        await asyncio.gather(*(work() for _ in range(32)))

    asyncio.run(main())
    assert most == 1
    at_rest(client, name)


def test_a_function_that_calls_itself_waits_for_itself_unless_it_is_reentrant(client, name):
    def depth(left):
        return 0 if left == 0 else 1 + again(left - 1)

    again = client.lock(name, wait=0.05)(depth)
    with pytest.raises(LockTimeoutError):
        again(2)
    again = client.reentrant(name, wait=20)(depth)
    assert again(2) == 2
    at_rest(client, name)


def test_the_error_of_a_function_comes_out(client, name):
    @client.lock(name)
    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    at_rest(client, name)


def rows():
    yield 1


async def awaited_rows():
    yield 1


class Rows:
    def __call__(self):
        yield 1


@pytest.mark.parametrize("late", [rows, awaited_rows, Rows(), functools.partial(rows)], ids=["generator", "asynchronous", "object", "partial"])
@pytest.mark.parametrize("way", WAYS)
def test_what_would_run_after_the_release_is_refused(client, name, way, late):
    with pytest.raises(InvalidArgumentError, match="before its body runs") as told:
        decorators(client, name)[way](late)
    assert told.value.fields == {"argument": "function"}


@pytest.mark.parametrize("way", WAYS)
def test_what_has_yet_to_run_is_refused_at_its_call(client, name, way):
    def report():
        yield "it must not run"

    async def reports():
        yield "it must not run"

    hidden = lambda: report()
    for deferred in (hidden, contextlib.contextmanager(report), contextlib.asynccontextmanager(reports)):
        with pytest.raises(InvalidArgumentError, match="has yet to run"):
            decorators(client, name)[way](deferred)()
    # What opens something is no body of ours.
    assert decorators(client, name)[way](lambda: contextlib.nullcontext("open"))().__enter__() == "open"
    at_rest(client, name)


@pytest.mark.parametrize("way", WAYS)
def test_what_hides_a_coroutine_is_refused_at_its_call(client, name, way):
    async def report():
        raise AssertionError("it must not run")

    with pytest.raises(InvalidArgumentError, match="a lock of `fencelock.asyncio`"):
        decorators(client, name)[way](report)
    with pytest.raises(InvalidArgumentError, match="a lock of `fencelock`"):
        decorators(twin(client), name)[way](lambda: None)
    with pytest.raises(InvalidArgumentError, match="decorate the `async def`"):
        decorators(client, name)[way](lambda: report())()
    at_rest(client, name)


@pytest.mark.parametrize("way", WAYS)
def test_what_cannot_be_called_is_refused(client, name, way):
    with pytest.raises(InvalidArgumentError, match="`5` is no function"):
        decorators(client, name)[way](5)


TYPED = """
from typing import assert_type
import fencelock.asyncio

client, awaited = fencelock.connect("memory:"), fencelock.asyncio.connect("memory:")

@client.lock("x")
def one(day: str, *, again: bool = False) -> int: ...
@awaited.locked("x:{day}")
async def two(day: str) -> int: ...
@awaited.all(["x"])
async def three(day: str) -> int: ...
@awaited.locked("x:{day}", on_busy="skip")
async def four(day: str) -> int: ...
@awaited.job("x", period=60)
async def five(day: str) -> int: ...

async def main() -> None:
    assert_type(await two(day="monday"), int)
    assert_type(await three("monday"), int)
    assert_type(await four("monday"), int | None)
    assert_type(await five("monday"), int | None)

assert_type(one("monday", again=True), int)
one(5)
"""


def test_what_is_decorated_keeps_its_signature(tmp_path):
    (tmp_path / "typed.py").write_text(TYPED)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    words = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "typed.py"]
    checked = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PATH": path})
    errors = [line for line in checked.stdout.splitlines() if " error: " in line]
    wrong_call = TYPED.count("\n")
    assert len(errors) == 1 and f"typed.py:{wrong_call}:5 " in errors[0] and '"str"' in errors[0], checked.stdout


@pytest.mark.parametrize(("wrong", "why"), [("{dya}", "`dya`"), ("{}", "``"), ("{0}", "`0`"), ("{day", "expected '}'"), ("{dya.x[1]}", "`dya`")])
def test_a_name_of_other_arguments_is_refused_before_any_call(client, wrong, why):
    with pytest.raises(InvalidArgumentError, match="cannot be told") as told:
        client.locked(f"report:{wrong}")(lambda day: day)
    assert why in str(told.value)


def test_a_name_may_say_parts_of_arguments(client):
    @client.locked("report:{day.year}:{of[0]}:{{x}}")
    def report(day, *of):
        return client.names("report:")

    assert report(date(2026, 7, 1), "shop") == ["report:2026:shop:{x}"]
