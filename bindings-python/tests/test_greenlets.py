"""Greenlets of gevent and eventlet: one thread runs many, so none of them may wait in native code."""

import subprocess
import sys
import textwrap
import threading
import urllib.request

import pytest
from conftest import at_rest

import fencelock

pytestmark = pytest.mark.full

PATCHED = {
    "gevent": """
        from gevent import monkey
        monkey.patch_all()
        import gevent
        from gevent import Timeout, joinall, sleep, spawn
        kill = gevent.kill
        result = lambda greenlet: greenlet.get()
    """,
    "eventlet": """
        import warnings
        # It warns of itself.
        with warnings.catch_warnings(action="ignore"):
            import eventlet
        eventlet.monkey_patch()
        from eventlet import Timeout, kill, sleep, spawn
        result = lambda greenlet: greenlet.wait()
        joinall = lambda greenlets: [greenlet.wait() for greenlet in greenlets]
    """,
}
"""The beginning of a program for each library; the names it defines are the same for both."""

LIBRARIES = pytest.mark.parametrize("library", PATCHED)


def run(library, text, *words):
    """Runs a program over greenlets to its end."""
    program = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(PATCHED[library]) + text, *words]
    return subprocess.run(program, capture_output=True, text=True, timeout=60)


CONTEND = """
import sys, fencelock

client = fencelock.connect(sys.argv[1], ttl=2)
inside = most = done = 0

def work():
    global inside, most, done
    for _ in range(10):
        with client.lock(sys.argv[2], wait=30) as guard:
            inside += 1
            most = max(most, inside)
            sleep(0.002)
            assert guard.is_held
            inside -= 1
            done += 1

joinall([spawn(work) for _ in range(2)])
client.close()
print(most, done)
"""
"""Two greenlets that want one lock, and rest while they hold it."""


@LIBRARIES
def test_two_greenlets_take_turns(library, url, name):
    ended = run(library, CONTEND, url, name)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "1 20\n", ""), ended


WAITS = """
import json, sys, threading, fencelock

told = []
client = fencelock.connect(sys.argv[1], ttl=2, on_event=lambda event: told.append(str(event.kind)))
other = fencelock.connect(sys.argv[1], ttl=2).open()
name, ticks, stop = sys.argv[2], 0, False

def tick():
    global ticks
    while not stop:
        sleep(0.01)
        ticks += 1

def waits(what, act, *expected):
    before = ticks
    try:
        answer = act()
    except fencelock.FencelockError as error:
        answer = type(error).__name__
    assert ticks - before >= 3, (what, ticks - before)
    assert answer in expected, (what, answer)

def later(act):
    def wait_and_act():
        sleep(0.3)
        act()
    return spawn(wait_and_act)

def held_until_lost():
    with client.lock(name, ttl=1, renew=False) as guard:
        assert guard.wait_lost()

def led():
    observed = client.election(name + ":elect").observe()
    first = next(observed)
    later(lambda: led_by.append(other.election(name + ":elect").acquire()))
    return first is None and next(observed) is not None

led_by = []
ticker = spawn(tick)
held = other.lock(name).acquire()
waits("acquire", lambda: client.lock(name, wait=0.3).acquire(), "LockTimeoutError")
waits("all", lambda: client.all([name, name + ":2"], wait=0.3).acquire(), "LockTimeoutError")
held.release()
waits("wait_lost", held_until_lost, "LockLostError")
waits("observe", led, True)
led_by.pop().release()

# What does not wait for anybody works as well.
with client.all([name, name + ":2"]) as both:
    both.extend(3)
with client.job(name + ":job", period=60).start() as running:
    assert running.is_held
assert client.version(name + ":value").update(lambda seen: (seen or 0) + 1).value == 1
assert not client.lock(name).inspect().holders and client.guarantees()

# Whoever is sent away in the middle of a wait leaves nothing.
held = other.lock(name).acquire()
try:
    with Timeout(0.2):
        client.lock(name).acquire()
    raise AssertionError("it was granted")
except Timeout:
    pass
waiting = spawn(lambda: client.lock(name).acquire())
sleep(0.1)
assert other.lock(name).inspect().waiters
kill(waiting)
for _ in range(500):
    if not other.lock(name).inspect().waiters:
        break
    sleep(0.01)
assert not other.lock(name).inspect().waiters
held.release()
stop = True
joinall([ticker])
client.close()
other.close()
assert {"waiting", "granted", "released"} <= set(told), told
print("whole")
"""
"""Every wait there is, beside a greenlet that counts how often it has its turn."""


@LIBRARIES
def test_no_wait_stops_the_other_greenlets(library, url, name):
    ended = run(library, WAITS, url, name)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "whole\n", ""), ended


STACKS = """
import contextlib, sys, fencelock

client = fencelock.connect(sys.argv[1], ttl=5)
permits = client.semaphore(sys.argv[2], 2)
told = []

def work(number, rest):
    with contextlib.ExitStack() as stack:
        guard = stack.enter_context(permits)
        sleep(rest)
        told.append((number, guard.is_held))

joinall([spawn(work, 1, 0.1), spawn(work, 2, 0.3)])
client.close()
print(told)
"""
"""Exit stacks say nothing of where a block began, and both greenlets are on one thread."""


@LIBRARIES
def test_an_exit_stack_gives_back_what_its_own_greenlet_took(library, url, name):
    ended = run(library, STACKS, url, name)
    assert (ended.returncode, ended.stdout) == (0, "[(1, True), (2, True)]\n"), ended


HUB = """
import sys, fencelock

client = fencelock.connect(sys.argv[1]).open()
told = []

def inside():
    try:
        client.lock(sys.argv[2]).acquire()
    except fencelock.FencelockError as error:
        told.append((error.code, "hub" in str(error)))

spawn(sleep, 0)
sleep(0)
HUB(inside)
sleep(0.1)
client.close()
print(told)
"""
"""A callback of the hub itself, which cannot wait for anything."""


@pytest.mark.parametrize(
    ("library", "how"),
    [
        ("gevent", "gevent.get_hub().loop.run_callback(inside)"),
        ("eventlet", "eventlet.hubs.get_hub().schedule_call_global(0, inside)"),
    ],
)
def test_the_hub_itself_is_refused(library, how, url, name):
    ended = run(library, HUB.replace("HUB(inside)", how), url, name)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[('invalid', True)]\n", ""), ended


FORKS = """
import os, sys, fencelock

client = fencelock.connect(sys.argv[1], ttl=2)
name = sys.argv[2]
held = client.lock(name).acquire()
waiting = spawn(lambda: client.lock(name).acquire())
sleep(0.1)
pid = os.fork()
if pid == 0:
    assert not held.is_held
    with client.lock(name + ":child", wait=5) as own:
        assert own.is_held
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
assert held.is_held
held.release()
assert result(waiting).is_held
print("kept", flush=True)
os._exit(0)
"""
"""Forks while a greenlet waits: what wakes that one is not taken by the child."""


@LIBRARIES
@pytest.mark.parametrize("shared_url", ["redis", "sqlite"], indirect=True)
def test_a_fork_beside_a_greenlet_that_waits(library, shared_url, name):
    ended = run(library, FORKS, shared_url, name)
    assert (ended.returncode, ended.stdout) == (0, "kept\n"), ended


APPLICATION = """
import os, time, fencelock

client = fencelock.connect(os.environ["URL"], ttl=5)
lock = client.lock(os.environ["NAME"], wait=20)

def app(environ, start_response):
    if environ["PATH_INFO"] == "/work":
        with lock as guard:
            time.sleep(0.05)
            body = str(guard.is_held)
    else:
        body = "here"
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [body.encode()]
"""


@pytest.mark.parametrize("shared_url", ["redis", "sqlite"], indirect=True)
def test_requests_of_a_gevent_server_contend(shared_url, name, tmp_path, monkeypatch):
    (tmp_path / "application.py").write_text(APPLICATION)
    monkeypatch.setenv("URL", shared_url)
    monkeypatch.setenv("NAME", name)
    words = [sys.executable, "-m", "gunicorn", "-k", "gevent", "--workers", "2", "--bind", "127.0.0.1:0", "application:app"]
    server = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        address = next(line.split("Listening at: ")[1].split(" ")[0] for line in server.stderr if "Listening at" in line)
        threading.Thread(target=server.stderr.read, daemon=True).start()
        answers = []

        def ask(path):
            with urllib.request.urlopen(address + path, timeout=30) as answer:
                answers.append(answer.read())

        # Who works waits for one lock, in four greenlets or more of each process; who does not is answered beside them.
        asking = [threading.Thread(target=ask, args=["/work" if number % 4 else "/"]) for number in range(32)]
        for one in asking:
            one.start()
        for one in asking:
            one.join()
        assert sorted(answers) == [b"True"] * 24 + [b"here"] * 8
    finally:
        server.terminate()
        assert server.wait(30) == 0
    with fencelock.connect(shared_url) as client:
        at_rest(client, name)


TRIO = """
import sys, trio, fencelock.asyncio

client = fencelock.connect(sys.argv[1], ttl=5)
lock = client.lock(sys.argv[2])

async def main():
    try:
        async with fencelock.asyncio.connect(sys.argv[1]).lock(sys.argv[2]):
            pass
    except fencelock.FencelockError as error:
        print(error.code, "trio.to_thread" in str(error))
    # As it says:
    guard = await trio.to_thread.run_sync(lock.acquire)
    try:
        # Whoever would wait here would stop the run, and the holder with it.
        lock.acquire()
    except fencelock.FencelockError as error:
        print(error.code, "trio.to_thread" in str(error))
    print(guard.is_held)
    await trio.to_thread.run_sync(guard.release)

trio.run(main)
client.close()
"""
"""trio has no asyncio loop: it is told so, and what to do works."""


def test_trio_is_told_what_to_do(url, name):
    words = [sys.executable, "-c", TRIO, url, name]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "unsupported True\ninvalid True\nTrue\n", ""), ended


def test_the_package_imports_neither_library():
    program = "import sys, fencelock; print({'gevent', 'eventlet', 'greenlet', 'trio'} & set(sys.modules))"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert ended.stdout == "set()\n", ended
