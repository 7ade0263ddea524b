"""Exits of interpreters: what was held is free within a second, and none hangs."""

import signal
import time

import pytest
from conftest import leftovers, scaled, script

import fencelock

pytestmark = pytest.mark.full

PARTING = 1.0
"""So many seconds an exit gives what it holds, from where it begins to part."""

HOLDING = """
import asyncio, atexit, signal, sys, threading, fencelock.asyncio

url, name, way, end = sys.argv[1:]
# What is registered last is done first: the package parts right behind this.
atexit.register(print, "parting", flush=True)
clients = [(fencelock if "threads" in way else fencelock.asyncio).connect(url) for _ in range(4)]
kept, loop = [], asyncio.new_event_loop()

def locks():
    for number, client in enumerate(clients):
        of = f"{name}:{number}"
        yield from (client.lock(f"{of}:{each}") for each in range(10))
        yield client.all([of + ":a", of + ":b"])
        yield client.semaphore(of + ":permits", 2)
        yield client.semaphore(of + ":permits", 2)
        yield client.read_lock(of + ":both")
        yield client.election(of + ":election")
        yield client.reentrant(of + ":again")

def take():
    for lock in locks():
        kept.append(lock.acquire())

def in_a_block(entered):
    # Nobody has its client, nor its lock.
    with fencelock.connect(url).lock(name + ":block").acquire():
        entered.set()
        threading.Event().wait()

def on_threads():
    threads = [threading.Thread(target=lambda lock=lock: kept.append(lock.acquire())) for lock in locks()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    entered = threading.Event()
    threading.Thread(target=in_a_block, args=(entered,), daemon=True).start()
    entered.wait()

async def awaited():
    kept.extend(await asyncio.gather(*(lock.acquire() for lock in locks())))

async def stay(lock, entered):
    async with lock:
        entered.set()
        await asyncio.get_running_loop().create_future()

async def begin():
    for lock in locks():
        entered = asyncio.Event()
        kept.append(asyncio.create_task(stay(lock, entered)))
        # asyncio would tell of it.
        kept[-1]._log_destroy_pending = False
        await entered.wait()

if way == "threads":
    take()
elif way == "many threads":
    on_threads()
elif way == "asyncio":
    asyncio.run(awaited())
else:
    loop.run_until_complete(begin())
signal.signal(signal.SIGTERM, lambda *_: sys.exit(4))
print("ready", flush=True)
sys.stdin.readline()
if end == "raise":
    raise SystemExit(3)
if end == "exit":
    sys.exit(0)
if end == "error":
    kept.nothing
"""
"""Holds locks of every kind by four clients, and ends when it is told to."""

WAYS = ["threads", "many threads", "asyncio", "tasks in blocks"]
ENDS = {"return": 0, "raise": 3, "exit": 0, "error": 1, "SIGINT": -signal.SIGINT, "SIGTERM": 4}


def parts(process):
    """Waits until the program's exit begins to part, and answers when that was."""
    said = process.stdout.readline()
    now = time.monotonic()
    assert said == "parting\n", process.stderr.read()
    return now


def free_within(client, names, begun):
    """Waits until all are seen to be free, which is to be within the second."""
    for name in names:
        while state := client.lock(name).inspect().holders:
            assert time.monotonic() < begun + PARTING, (name, state)
    took = time.monotonic() - begun
    assert took < PARTING, took
    print(f"{len(names)} locks were free after {1000 * took:.0f} ms")


@pytest.mark.parametrize("shared_url", ["redis", "sqlite"], indirect=True)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("way", WAYS)
# U31: with a handler that exits, SIGTERM is one of the ends.
def test_an_exit_with_held_guards_frees_them(shared_url, name, end, way):
    process = script(HOLDING, shared_url, name, way, end)
    with fencelock.connect(shared_url) as client:
        names = client.names(name)
        held = sum(len(client.lock(name).inspect().holders) for name in names)
        assert (len(names), held) == ((65, 69) if way == "many threads" else (64, 68))
        if end.startswith("SIG"):
            process.send_signal(getattr(signal, end))
        else:
            process.stdin.write("end\n")
            process.stdin.flush()
        free_within(client, names, parts(process))
        said, complaint = process.communicate(timeout=5)
    assert (process.returncode, said) == (ENDS[end], ""), complaint
    assert leftovers(shared_url, name) == []
    assert complaint.count("Error") == (end == "error") and "ignored" not in complaint, complaint


STOPPED = """
import atexit, os, signal, subprocess, socket, sys, time
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
program = os.environ.get("FENCELOCK_REDIS_SERVER", "redis-server")
server = subprocess.Popen([program, "--port", str(port), "--save", ""], stdout=subprocess.DEVNULL)
# What is registered first is done last: the server is there, and silent, when the package parts.
atexit.register(server.kill)
began = []
atexit.register(lambda: print("parted", time.monotonic() - began[0], flush=True))
while True:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        break
    except OSError:
        time.sleep(0.01)
import fencelock
atexit.register(print, "parting", flush=True)
atexit.register(lambda: began.append(time.monotonic()))
guard = fencelock.connect(f"redis://127.0.0.1:{port}").lock("x").acquire()
others = [fencelock.connect(sys.argv[1]).lock(f"{sys.argv[2]}{number}").acquire() for number in range(5)]
server.send_signal(signal.SIGSTOP)
print("ready", flush=True)
"""
"""Holds locks, one of them on a server of its own that has stopped by the time the program exits."""

LATE = 1.0
"""So much later a busy machine may go on than it was told to."""


@pytest.mark.parametrize("shared_url", ["redis", "sqlite"], indirect=True)
def test_an_exit_without_a_store_waits_a_second_for_all(shared_url, name):
    process = script(STOPPED, shared_url, name)
    begun = parts(process)
    with fencelock.connect(shared_url) as client:
        free_within(client, [f"{name}{number}" for number in range(5)], begun)
    word, took = process.stdout.readline().split()
    assert word == "parted" and PARTING <= float(took) + 0.01 < PARTING + LATE, took
    process.wait(5)


WAITING_AT_EXIT = """
import contextlib, sys, threading, time, fencelock
client, other = fencelock.connect(sys.argv[1]).open(), fencelock.connect(sys.argv[1])
name = sys.argv[2]
held = other.lock(name).acquire()
election = client.election(name + ":election")

def observe():
    for _ in election.observe():
        pass

def run(wait):
    # The exit closes the client, which whoever waits is told of if there is time.
    with contextlib.suppress(fencelock.FencelockError):
        wait()

def acquire():
    # The exit frees what the other client holds, so one of them may still get it.
    with client.lock(name):
        pass

for wait in (held.wait_lost, observe, acquire):
    for _ in range(3):
        threading.Thread(target=run, args=(wait,), daemon=True).start()
give_up = time.monotonic() + 5
while not client.lock(name).inspect().waiters:
    assert time.monotonic() < give_up
    time.sleep(0.005)
print("ready", flush=True)
"""
"""Returns while threads of its own wait in natives."""


@pytest.mark.parametrize("wave", range(scaled(50) // 5))
def test_an_exit_with_threads_that_wait_is_quiet(redis_url, name, wave):
    processes = [script(WAITING_AT_EXIT, redis_url, f"{name}:{number}") for number in range(5)]
    began = time.monotonic()
    for process in processes:
        said, complaint = process.communicate(timeout=10)
        # That the hold ended while somebody waited for its loss is a warning.
        others = [line for line in complaint.splitlines() if not line.endswith("the client was closed")]
        assert (process.returncode, said, others) == (0, "", []), wave
    assert time.monotonic() - began < 3
