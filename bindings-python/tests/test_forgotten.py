"""The warning about a forgotten guard: nothing that is raised inside of it is lost, or raised in a wrong place."""

import gc
import subprocess
import sys
import threading
import warnings

import pytest
from conftest import at_rest, drawn, scaled

import fencelock

pytestmark = pytest.mark.full

INSIDE = """
import signal, sys, warnings, fencelock

client, sort = fencelock.connect(sys.argv[1]), sys.argv[2]
warnings.simplefilter("always")

class Overdue(Exception):
    pass

def leave(*_):
    sys.exit(3)

def hurry(*_):
    raise Overdue

signal.signal(signal.SIGTERM, leave)
signal.signal(signal.SIGALRM, hurry)

def show(*_, **__):
    # Its handler runs at the next step, which is in here.
    signal.raise_signal(getattr(signal, sort))
    print("not reached")

warnings.showwarning = show

def steps():
    for _ in range(10):
        pass

guard = client.lock("x").acquire()
try:
    del guard
    steps()
    print("swallowed")
except (KeyboardInterrupt, SystemExit, Overdue) as error:
    print(type(error).__name__)

# Beside an error that is on its way already: both are told, one after the other.
try:
    try:
        print(client.lock("x").acquire(wait=5), 1 / 0)
    except ZeroDivisionError:
        print("ZeroDivisionError")
        steps()
    print("swallowed")
except (KeyboardInterrupt, SystemExit, Overdue) as error:
    print(type(error).__name__)

# And where nobody catches it.
guard = client.lock("x").acquire(wait=5)
del guard
steps()
print("swallowed")
"""
"""Forgets guards, and is told of a signal right inside of the warnings."""

RAISED = {"SIGINT": ("KeyboardInterrupt", -2), "SIGTERM": ("SystemExit", 3), "SIGALRM": ("Overdue", 1)}


@pytest.mark.parametrize("sort", RAISED)
def test_a_signal_inside_of_the_warning_is_not_swallowed(redis_url, sort):
    ended = subprocess.run([sys.executable, "-c", INSIDE, redis_url, sort], capture_output=True, text=True, timeout=30)
    error, code = RAISED[sort]
    assert ended.stdout == f"{error}\nZeroDivisionError\n{error}\n", ended.stderr
    assert ended.returncode == code and "Exception ignored" not in ended.stderr, ended.stderr
    with fencelock.connect(redis_url) as client:
        at_rest(client, "x")


COUNTED = """
import os, random, signal, sys, time, warnings, fencelock

client, signals, draw = fencelock.connect(sys.argv[1]).open(), int(sys.argv[2]), random.Random(int(sys.argv[3]))
warnings.simplefilter("always")
handled = caught = swallowed = 0

def handler(*_):
    global handled
    handled += 1
    raise KeyboardInterrupt

# In a function of its own: 3.13 does not count a loop's last step as part of the `try` it is in.
def forget(before):
    while handled == before:
        lock.acquire()
    for _ in range(10):
        pass

signal.signal(signal.SIGALRM, handler)
lock = client.lock("counted")
# The warnings themselves are many.
told, sys.stderr = sys.stderr, open(os.devnull, "w")
lock.acquire()
began = time.perf_counter()
lock.acquire()
once = time.perf_counter() - began
for _ in range(signals):
    before = handled
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-5 + draw.random() * 3 * once)
        forget(before)
        swallowed += 1
    except KeyboardInterrupt:
        caught += 1
sys.stderr.close()
sys.stderr = told
assert (handled, caught, swallowed) == (signals, signals, 0), (handled, caught, swallowed)
"""
"""Forgets guards all the time, and is told of signals at any moment."""


def test_every_signal_around_forgotten_guards_raises_once(url):
    seed = drawn().randrange(1_000_000)
    words = [sys.executable, "-c", COUNTED, url, str(scaled(5000)), str(seed)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=1200)
    assert (ended.returncode, ended.stderr) == (0, ""), (seed, ended.stderr)


@pytest.mark.parametrize("thread", ["main", "another"])
def test_a_warning_that_is_an_error_is_raised_nowhere(client, name, monkeypatch, thread):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: told.append((what.exc_type, name in what.exc_value.name)))

    def forget():
        guards = [client.lock(f"{name}:{number}").acquire() for number in range(3)]
        guards.clear()
        gc.collect()
        ends.append("whole")

    ends = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if thread == "main":
            forget()
        else:
            forgets = threading.Thread(target=forget)
            forgets.start()
            forgets.join()
    assert (told, ends) == ([(fencelock.ForgottenGuardWarning, True)] * 3, ["whole"])
    for number in range(3):
        at_rest(client, f"{name}:{number}")


def test_a_hook_that_fails_on_another_thread_is_told_of(client, name, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: told.append(what.exc_type))

    def fail(*_, **__):
        raise ZeroDivisionError

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", fail)
        forgets = threading.Thread(target=lambda: client.lock(name).acquire() and None)
        forgets.start()
        forgets.join()
    assert told == [ZeroDivisionError]
    at_rest(client, name)


THROWN_AWAY = """
import sys, fencelock

client = fencelock.connect(sys.argv[1])
for number in range(3):
    client.lock(f"orders:{number}").acquire()
client.lock("another").acquire()
client.close()
"""
"""The habit of a library whose locks are their own guards."""


def test_a_guard_that_is_thrown_away_is_told_of_once_for_each_place(url):
    ended = subprocess.run([sys.executable, "-c", THROWN_AWAY, url], capture_output=True, text=True, timeout=30)
    places = [line for line in ended.stderr.splitlines() if "ForgottenGuardWarning" in line]
    assert ended.returncode == 0 and len(places) == 2, ended.stderr
    for place, line in zip(places, (6, 7), strict=True):
        assert place.startswith(f"<string>:{line}: ") and "with lock:" in place, place
