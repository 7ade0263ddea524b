"""The package for threads."""

import contextlib
import gc
import math
import socket
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import at_rest, free_port, redis_server, soon

import fencelock
from fencelock import InvalidArgumentError, LockLostError, LockTimeoutError, NotHeldError, Reason, Released


def test_a_block_holds_the_lock(client, name):
    lock = client.lock(name, ttl=5)
    with lock as guard:
        assert guard.is_held and guard.token > 0 and 0 < guard.remaining <= 5
        assert lock.try_acquire() is None
        guard.check()
    assert not guard.is_held
    with pytest.raises(NotHeldError):
        guard.check()
    at_rest(client, name)


def test_a_wait_that_ends_is_a_timeout_error(client, name):
    with client.lock(name):
        began = time.monotonic()
        with pytest.raises(TimeoutError) as told:
            client.lock(name, wait=0.1).acquire()
        assert 0.1 <= time.monotonic() - began < soon(2)
        assert isinstance(told.value, LockTimeoutError) and told.value.code == "timeout" and told.value.retryable
        with pytest.raises(LockTimeoutError):
            client.lock(name).acquire(wait=0)
    at_rest(client, name)


def test_tokens_rise(client, name):
    tokens = []
    for _ in range(5):
        with client.lock(name) as guard:
            tokens.append(guard.token)
    assert tokens == sorted(set(tokens))


def test_one_lock_object_serves_many_threads(client, name):
    lock, inside, most = client.lock(name), 0, 0

    def work():
        nonlocal inside, most
        for _ in range(20):
            with lock:
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    at_rest(client, name)


def test_a_waiting_thread_lets_others_run(url, client, name):
    granted = []

    def wait():
        with other.lock(name).acquire(wait=5) as guard:
            granted.append(guard.token)

    with fencelock.connect(url) as other:
        held = client.lock(name).acquire()
        waits = threading.Thread(target=wait)
        waits.start()
        # Only a thread that runs beside it sees it wait, and ends that before it is over.
        while waits.is_alive() and not client.lock(name).inspect().waiters:
            pass
        held.release()
        waits.join()
    assert granted


def test_a_loss_is_told_at_the_end_and_never_masks_the_bodys_error(redis_url, name):
    import redis

    plain = redis.Redis.from_url(redis_url)
    with fencelock.connect(redis_url) as client:
        lock = client.lock(name, ttl=1, renew=False)
        with pytest.raises(LockLostError):
            with lock as guard:
                time.sleep(1.1)
                assert not guard.is_held
                with pytest.raises(LockLostError):
                    guard.check()
        with pytest.raises(ZeroDivisionError) as raised:
            with lock:
                time.sleep(1.1)
                raise ZeroDivisionError
        assert ["the lock was lost by then" in note for note in raised.value.__notes__] == [True]
        with pytest.raises(ZeroDivisionError) as raised:
            with client.job(name + ":job", 60, at_most_for=1).start():
                time.sleep(1.1)
                raise ZeroDivisionError
        assert ["the lock was lost by then" in note for note in raised.value.__notes__] == [True]
        # Somebody else's doing, found by the release.
        with pytest.raises(LockLostError):
            with client.lock(name):
                plain.delete(f"fencelock:{{{name}}}:held:{name}")


def test_waiting_for_the_loss(client, name):
    lost = client.lock(name, ttl=1, renew=False).acquire()
    assert lost.wait_lost()
    lost.forget()
    kept = client.lock(name).acquire()
    told = []
    waits = threading.Thread(target=lambda: told.append(kept.wait_lost()))
    waits.start()
    time.sleep(0.05)
    kept.release()
    waits.join()
    assert told == [False]


def test_a_forgotten_guard_is_released_and_warned_about_once(client, name):
    guard = client.lock(name).acquire()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        del guard
        gc.collect()
    # A collection may find what an earlier test has left too.
    assert [warning.message.name for warning in told if warning.category is fencelock.ForgottenGuardWarning] == [name]
    at_rest(client, name)


def test_a_guard_that_is_forgotten_by_an_error_does_not_mask_it(client, name, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: told.append(what.exc_type))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(AttributeError, match="relaese"):
            client.lock(name).acquire().relaese()
    assert told == [fencelock.ForgottenGuardWarning]
    at_rest(client, name)


def test_release_tells_how_it_went(client, name):
    guard = client.lock(name).acquire()
    assert guard.release() is Released.RELEASED
    with pytest.raises(NotHeldError):
        guard.release()
    lapsed = client.lock(name, ttl=1, renew=False).acquire()
    time.sleep(1.1)
    assert lapsed.release() is Released.ALREADY_LOST


def test_kinds(client, name):
    with client.read_lock(name) as one, client.read_lock(name) as two:
        assert one.is_held and two.is_held and client.write_lock(name).try_acquire() is None
    with client.write_lock(name) as guard:
        assert guard.token > two.token and client.read_lock(name).try_acquire() is None
    with client.semaphore(name + ":permits", 2), client.semaphore(name + ":permits", 2) as second:
        assert client.semaphore(name + ":permits", 2).try_acquire() is None and second.is_held
    with client.all([f"{name}:b", f"{name}:a"]) as several:
        assert set(several.tokens) == {f"{name}:a", f"{name}:b"}
    scope = client.scope()
    with scope.lock(name + ":again") as outer, scope.lock(name + ":again") as inner:
        assert outer.token == inner.token
    again = client.reentrant(name + ":self")
    with again, again:
        pass


def test_a_job_has_a_period_or_a_cron_expression(client, name):
    both = client.job(name, 60, cron="0 3 * * *")
    for wrong, argument in (both, "cron"), (client.job(name), "period"), (client.job(name, 60, timezone="UTC"), "timezone"):
        with pytest.raises(InvalidArgumentError) as refused:
            wrong.start()
        assert refused.value.fields["argument"] == argument


def test_elections_jobs_and_versions(client, name):
    election = client.election(name)
    assert election.leader() is None
    with election as guard:
        assert election.leader().token == guard.token
        assert election.leader().info["language"] == "python"
    job = client.job(name + ":job", period=60)
    with pytest.raises(ZeroDivisionError):
        with job.start(at=1_700_000_000):
            raise ZeroDivisionError
    state = job.inspect()
    assert (state.status, state.instant) == ("failed", 1_700_000_000)
    skipped = job.start(at=1_700_000_000)
    assert (bool(skipped), skipped.reason, skipped.last, skipped.next) == (False, Reason.DONE, state, None)
    soon = job.start(at=1_700_000_060)
    assert (soon.reason, soon.next) == ("not_due", pytest.approx(state.started + 30))
    often = client.job(name + ":job", period=0.02)
    time.sleep(0.01)
    with often.start(at=1_700_000_060):
        assert often.start(at=1_700_000_061).reason is Reason.RUNNING
    assert job.inspect().status == "succeeded"
    with pytest.raises(fencelock.InvalidArgumentError, match="far ahead of the store's clock"):
        job.start(at=time.time() + 3600)
    version = client.version(name + ":balance")
    assert version.read() is None
    made = version.compare_and_set(None, {"euros": 5})
    assert made.done and version.read().value == {"euros": 5}
    late = version.compare_and_set(None, 1)
    assert not late.done and late.there.version == made.version
    assert version.update(lambda seen: {"euros": seen["euros"] + 1}).value == {"euros": 6}
    assert version.update(lambda seen: None) is None
    assert version.delete(version.read().version).done and version.read() is None


def test_a_run_that_is_released_has_failed(client, name):
    job = client.job(name, period=60)
    run = job.start(at=1_700_000_000)
    assert run.release() is fencelock.Released.RELEASED
    assert job.inspect().status == "failed"
    with pytest.raises(fencelock.NotHeldError):
        run.release()


def test_what_people_see(client, name):
    lock = client.lock(name, info={"order": "42"}, ttl=5)
    with lock as guard:
        state = client.lock(name).inspect()
        assert state.holder.token == guard.token and 0 < state.holder.left <= 5
        assert state.holder.info["info"] == {"order": "42"}
        assert name in client.names("test:")
    assert client.guarantees()["store"] in ("memory", "sqlite", "redis")


def test_closing_frees_and_refuses(url, name):
    client = fencelock.connect(url).open()
    guard = client.lock(name).acquire()
    client.close()
    assert not guard.is_held
    guard.forget()
    with pytest.raises(fencelock.ClosedError):
        client.lock(name).acquire()
    with fencelock.connect(url) as other:
        other.lock(name).acquire(wait=soon(1)).release()


@pytest.mark.parametrize(
    ("say", "code", "says"),
    [
        (lambda client: client.lock(""), "invalid", "empty"),
        (lambda client: client.lock("x", tll=3), "invalid", "`ttl`"),
        (lambda client: client.lock("x", ttl=0), "invalid", "`ttl`"),
        (lambda client: client.lock("x", ttl=-1), "invalid", "`ttl` must be a time, not below zero"),
        (lambda client: client.lock("x", ttl="soon"), "invalid", "`ttl` must be a time, not below zero"),
        (lambda client: client.lock("x", ttl=math.nan), "invalid", "`ttl`"),
        (lambda client: client.lock("x", ttl=math.inf), "invalid", "`ttl`"),
        (lambda client: client.lock("x", wait=10**400), "invalid", "`wait`"),
        (lambda client: client.lock("x", renew=3), "invalid", "`renew`"),
        (lambda client: client.all("xyz"), "invalid", "['xyz']"),
        (lambda client: client.semaphore("x", 0), "invalid", "permit"),
    ],
)
def test_bad_input_is_named(client, say, code, says):
    with pytest.raises(fencelock.FencelockError) as told:
        say(client).acquire()
    assert told.value.code == code and says in str(told.value)
    assert not any(client.stats().values())


def test_u42_what_is_of_another_sort_is_named(client, name):
    job = {"period": "1h"}
    calls = {"name": lambda: client.lock(42).acquire(), "names": lambda: client.all([42]).acquire(), "period": lambda: client.job(name, **job).start()}
    for argument, call in calls.items():
        with pytest.raises(fencelock.InvalidArgumentError) as told:
            call()
        assert told.value.fields["argument"] == argument and argument in str(told.value)


def test_a_prefix_counts_as_part_of_the_name(redis_url):
    with fencelock.connect(redis_url, prefix="shop:") as client, pytest.raises(fencelock.InvalidArgumentError) as told:
        client.lock("x" * 510).acquire()
    assert "prefix" in str(told.value)


def test_a_hold_is_adopted_on_its_own_store_only(name):
    with fencelock.connect("memory:one") as one, fencelock.connect("memory:other") as other:
        text = one.lock(name).acquire().transfer()
        with pytest.raises(fencelock.NotHeldError):
            other.adopt(text)
        one.adopt(text).release()


def test_u40_an_error_tells_its_facts_once(client, name):
    with client.lock(name), pytest.raises(fencelock.LockTimeoutError) as told:
        client.lock(name).acquire(wait=0.01)
    assert str(told.value).count(f"name: {name}") == 1


def test_bad_urls_are_refused_at_once_and_secrets_stay_secret():
    with pytest.raises(fencelock.InvalidArgumentError) as told:
        fencelock.connect("redis://user:hunter2@[broken")
    assert "hunter2" not in str(told.value)
    with pytest.raises(fencelock.InvalidArgumentError):
        fencelock.connect("memory:", tll=5)
    absent = fencelock.connect("redis://user:hunter2@127.0.0.1:1", connect_timeout=0.2)
    with pytest.raises(fencelock.UnavailableError) as told:
        absent.lock("x").acquire()
    assert isinstance(told.value, ConnectionError) and told.value.retryable
    assert "hunter2" not in str(told.value) and "hunter2" not in repr(absent)


def test_u27_a_first_connect_is_part_of_the_wait(name, silent_url):
    with contextlib.closing(fencelock.connect(silent_url, connect_timeout=60, timeout=60)) as client:
        asks = [lambda wait=wait: client.lock(name, wait=wait).acquire() for wait in (0.1, "100ms")]
        for ask in (*asks, lambda: client.lock(name).try_acquire(wait=0.1)):
            began = time.monotonic()
            with pytest.raises(fencelock.UnavailableError):
                ask()
            assert 0.1 <= time.monotonic() - began < 20


def test_u27_a_server_that_starts_within_the_wait_is_waited_for(name, tmp_path):
    port, told, tried = free_port(), [], threading.Event()

    def hear(event):
        told.append(event.reason)
        tried.set()

    client = fencelock.connect(f"redis://127.0.0.1:{port}", wait=60, on_event=hear)
    with contextlib.closing(client), ThreadPoolExecutor(1) as pool:
        granted = pool.submit(client.lock(name).acquire)
        assert tried.wait(20) and told[0].endswith("still trying"), told
        with redis_server(port, tmp_path):
            assert granted.result().release() == Released.RELEASED


@pytest.mark.full
def test_a_look_at_a_guard_crosses_within_a_microsecond(name):
    with fencelock.connect("memory:crossing") as client, client.lock(name) as guard:
        look, calls, rounds = guard._grant.is_here, range(10_000), []
        for _ in range(10):
            began = time.perf_counter()
            for _ in calls:
                look()
            rounds.append((time.perf_counter() - began) / len(calls))
    assert min(rounds) < 1e-6, rounds
