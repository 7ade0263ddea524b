"""The events of a client's locks that an observer receives."""

import asyncio
import gc
import re
import subprocess
import sys
import threading
import time
import warnings
import weakref
from dataclasses import FrozenInstanceError

import pytest
import redis
from conftest import FULL, at_rest, soon
from test_forks import in_os_fork

import fencelock.asyncio
from fencelock import Event, EventKind


class Told(list):
    """An observer that keeps what it is told."""

    def __call__(self, event):
        self.append(event)

    def wait(self, kind, within=10.0):
        """The first event of a kind, once it is there."""
        give_up = time.monotonic() + within
        while True:
            for event in list(self):
                if event.kind == kind:
                    return event
            assert time.monotonic() < give_up, f"no {kind} in {self}"
            time.sleep(0.002)

    def kinds(self):
        return [event.kind.value for event in self]


@pytest.fixture
def unraised(monkeypatch):
    """The exceptions that reached `sys.unraisablehook`."""
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: told.append((what.exc_value, what.object)))
    return told


def observers():
    return [thread for thread in threading.enumerate() if thread.name == "fencelock-events"]


def test_a_start_that_starts_nothing_is_told_with_its_reason(url, name):
    told = Told()
    with fencelock.connect(url, on_event=told) as client:
        with client.job(name, period=3600).start() as run:
            assert not client.job(name, period=3600).start()
    skipped = told.wait("skipped")
    assert (skipped.name, skipped.token, skipped.reason) == (name, run.token, "running")


def test_threads_are_told_everything_in_order(url, name):
    told = Told()
    with fencelock.connect(url, on_event=told) as client:
        first, tokens = client.lock(name).acquire(), []
        waits = threading.Thread(target=lambda: tokens.append(client.lock(name).acquire()))
        waits.start()
        told.wait("waiting")
        first.release()
        waits.join()
        tokens[0].release()
    # Whoever has closed the client has been told.
    assert told.kinds() == ["granted", "waiting", "released", "granted", "released"]
    one, two = first.token, tokens[0].token
    assert [event.token for event in told] == [one, None, one, two, two]
    assert {event.name for event in told} == {name} and {event.reason for event in told} == {None}


def test_coroutines_are_told_by_their_loop(url, name):
    async def main():
        loop, events = asyncio.get_running_loop(), asyncio.Queue()
        on_event = lambda event: loop.call_soon_threadsafe(events.put_nowait, event)  # noqa: E731
        async with fencelock.asyncio.connect(url, on_event=on_event) as client:
            guard = await client.lock(name).acquire()
            next_one = asyncio.create_task(client.lock(name).acquire())
            told = [await events.get(), await events.get()]
            await guard.release()
            await (await next_one).release()
        while not events.empty():
            told.append(events.get_nowait())
        assert [event.kind.value for event in told] == ["granted", "waiting", "released", "granted", "released"]

    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_renewal_and_a_loss_are_told(redis_url, name):
    import redis

    told = Told()
    with fencelock.connect(redis_url, ttl=3, on_event=told) as client:
        guard = client.lock(name).acquire()
        assert told.wait("renewed").token == guard.token
        redis.Redis.from_url(redis_url).delete(f"fencelock:{{{name}}}:held:{name}")
        assert told.wait(EventKind.LOST) == Event(
            EventKind.LOST, name, guard.token, "the store no longer has the hold"
        )
        guard.forget()


def test_a_value_of_others_in_the_way_is_told(redis_url, redis_port, name):
    told = Told()
    with redis.Redis(port=redis_port) as server, fencelock.connect(redis_url, dialect="plain:", on_event=told) as client:
        server.set(name, "an application's text")
        with pytest.raises(fencelock.LockTimeoutError):
            client.lock(name, wait=0.1).acquire()
        assert "never ends by itself" in told.wait("trouble").reason
        server.delete(name)


def test_trouble_is_told_in_words(redis_url, name):
    import redis

    told, plain = Told(), redis.Redis.from_url(redis_url)
    with fencelock.connect(redis_url, on_event=told) as client:
        client.open()
        waits = threading.Thread(target=lambda: client.lock(name).acquire(wait=20).release())
        plain.config_set("maxmemory", 1)
        try:
            waits.start()
            event = told.wait("trouble")
        finally:
            plain.config_set("maxmemory", 0)
        waits.join()
    assert event.name == name and event.token is None and "memory" in event.reason
    assert told.kinds()[-2:] == ["granted", "released"]


def test_what_an_observer_raises_disturbs_nobody(url, name, unraised):
    heard = []

    def observer(event):
        heard.append(event)
        raise SystemExit if event.kind == "released" else ZeroDivisionError(event.kind)

    with fencelock.connect(url, on_event=observer) as client:
        with client.lock(name) as guard:
            assert guard.is_held
        with client.lock(name):
            pass
        at_rest(client, name)
    assert len(heard) == 4
    # Each once, with the observer by its side.
    assert [type(error) for error, _ in unraised] == [ZeroDivisionError, SystemExit] * 2
    assert all(by is observer for _, by in unraised)


def test_an_observer_that_hangs_holds_nobody_up(redis_url, name):
    begun, go_on = threading.Event(), threading.Event()

    def observer(event):
        begun.set()
        go_on.wait(60)

    client = fencelock.connect(redis_url, ttl=3, on_event=observer).open()
    guard = client.lock(name).acquire()
    assert begun.wait(10)
    time.sleep(3.5)
    assert guard.is_held, "it is renewed as ever"
    guard.release()
    at_rest(client, name)
    began = time.monotonic()
    client.close()
    assert time.monotonic() - began < soon(5)
    go_on.set()


def test_an_observer_may_close_its_client(url, name):
    closed = threading.Event()

    def observer(event):
        client.close()
        closed.set()

    client = fencelock.connect(url, on_event=observer)
    client.lock(name).acquire().forget()
    assert closed.wait(10)


def test_the_child_of_a_fork_is_told_of_its_own(redis_url, name):
    told = Told()
    with fencelock.connect(redis_url, ttl=3, on_event=told) as client:
        guard = client.lock(name).acquire()
        told.wait("granted")

        def child():
            told.clear()
            with client.lock(f"{name}:child") as own:
                token = own.token
            client.close()
            assert [(event.kind.value, event.token) for event in told] == [("granted", token), ("released", token)]

        for _ in range(5):
            in_os_fork(child)
        told.clear()
        assert told.wait("renewed").token == guard.token, "the parent's goes on"
        guard.release()
    assert not any(event.name.endswith("child") for event in told)


def test_an_observer_that_forks_leaves_the_parents_events_alone(redis_url, name):
    told = Told()

    def observer(event):
        if event.kind == "granted":
            # Only the parent comes back from this.
            in_os_fork(lambda: None)
        told(event)

    with fencelock.connect(redis_url, on_event=observer) as client:
        client.lock(name).acquire().release()
    assert told.kinds() == ["granted", "released"]


def test_nothing_is_left_of_a_closed_or_forgotten_client(url, name):
    before = len(observers())

    def gone(threads):
        give_up = time.monotonic() + 10
        while len(observers()) > threads:
            assert time.monotonic() < give_up, observers()
            time.sleep(0.002)

    told = Told()
    closed = fencelock.connect(url, on_event=told)
    assert len(observers()) == before, "nothing runs before something can happen"
    closed.lock(name).acquire().release()
    closed.close()
    gone(before)
    forgotten = fencelock.connect(url, on_event=Told()).open()
    assert len(observers()) == before + 1
    link = weakref.ref(forgotten._link)
    del forgotten
    gc.collect()
    assert link() is None
    gone(before)


@pytest.mark.parametrize("ends", ["pass", "guard = client.lock('b').acquire(); del client", "sys.exit(7)", "raise KeyError"])
def test_an_exit_tells_the_last_and_ends(ends, redis_url):
    program = f"""
import sys, time, fencelock
def tell(event):
    time.sleep(0.05)
    print(event.kind, event.name, flush=True)
client = fencelock.connect({redis_url!r}, on_event=tell)
client.lock("a").acquire().release()
{ends}
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20)
    code = {"sys.exit(7)": 7, "raise KeyError": 1}.get(ends, 0)
    assert ended.returncode == code, ended.stderr
    assert ended.stdout.splitlines()[:2] == ["granted a", "released a"]


def test_what_cannot_observe_is_refused_by_name():
    async def coroutine(event):
        del event

    for wrong in (coroutine, "print", 5):
        with pytest.raises(fencelock.InvalidArgumentError) as told:
            fencelock.connect("memory:", on_event=wrong)
        assert told.value.fields == {"argument": "on_event"}


def test_an_event_is_a_value():
    event = Event(EventKind.GRANTED, "orders:42", 7, None)
    assert event == Event(EventKind("granted"), "orders:42", 7, None) and hash(event)
    assert event.kind == "granted" and str(event.kind) == "granted"
    with pytest.raises(FrozenInstanceError):
        event.token = 8


@pytest.mark.full
def test_a_close_that_is_cancelled_ends_the_thread(redis_url, name):
    async def main():
        client = fencelock.asyncio.connect(redis_url, on_event=lambda event: None)
        await client.lock(name).acquire()
        thread = client._link._telling._thread
        # Nothing is answered meanwhile: the close waits for what it frees.
        redis.Redis.from_url(redis_url).client_pause(300)
        close = asyncio.create_task(client.close())
        await asyncio.sleep(0)
        close.cancel()
        with pytest.raises(asyncio.CancelledError):
            await close
        await asyncio.to_thread(thread.join, 5)
        assert not thread.is_alive()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fencelock.ForgottenGuardWarning)
        asyncio.run(main())
    with fencelock.connect(redis_url) as other:
        at_rest(other, name)


LOGGED = """
import logging, sys, fencelock
if sys.argv[1] == "debug":
    logging.basicConfig(level=logging.DEBUG)
with fencelock.connect("memory:") as client:
    client.lock("quiet").acquire().release()
    guard = client.lock("orders:42", ttl=1, renew=False).acquire()
    guard.wait_lost()
    guard.forget()
"""
"""Loses a lock."""


def test_a_loss_is_logged_where_nobody_configured_a_log():
    ended = subprocess.run([sys.executable, "-c", LOGGED, "nothing"], capture_output=True, text=True, timeout=30)
    (line,) = ended.stderr.splitlines()
    assert re.match(r"lost orders:42: token \d+, held for {} s".format(r"1\.0" if FULL else r"[1-9]\d*\.\d"), line), ended


def test_the_log_has_all_events_where_it_is_to_debug():
    ended = subprocess.run([sys.executable, "-c", LOGGED, "debug"], capture_output=True, text=True, timeout=30)
    kinds = [line.partition(":fencelock:") for line in ended.stderr.splitlines()]
    told = [(level, text.partition(":")[0]) for level, _, text in kinds if text]
    assert told[:3] == [("DEBUG", "granted quiet"), ("DEBUG", "released quiet"), ("DEBUG", "granted orders")], ended
    assert ("WARNING", "lost orders") in told, ended
