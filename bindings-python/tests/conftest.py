"""A Redis server of the tests' own, and clients of every store."""

import contextlib
import os
import random
import re
import socket
import subprocess
import sys
import textwrap
import time
import uuid

import pytest
import redis

import fencelock
import fencelock.asyncio

FULL = "FENCELOCK_FULL" in os.environ


def pytest_collection_modifyitems(config, items):
    """Tests that wait for faults, weigh memory or compare times run in full only."""
    late = [] if FULL else [item for item in items if item.get_closest_marker("full")]
    config.hook.pytest_deselected(items=late)
    items[:] = [item for item in items if item not in late]


def soon(seconds):
    """So long in full; beside other work 20 seconds."""
    return seconds if FULL else 20


def scaled(full):
    """So many in full, a tenth otherwise."""
    return full if FULL else full // 10


def drawn():
    """A random generator; a failure shows its seed, and `FENCELOCK_SEED` repeats it."""
    seed = int(os.environ.get("FENCELOCK_SEED", time.time_ns() % 1_000_000_000))
    print(f"FENCELOCK_SEED={seed}")
    return random.Random(seed)


def script(text, *words):
    """Starts a program over the package, and waits until it says so."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    return process


def free_port():
    """A port on which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def silent_url():
    """The URL of a server that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        yield f"redis://127.0.0.1:{silent.getsockname()[1]}"


@contextlib.contextmanager
def redis_server(port, folder):
    """A Redis server on this port that ends with the block."""
    program = os.environ.get("FENCELOCK_REDIS_SERVER", "redis-server")
    words = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    give_up = time.monotonic() + 30
    try:
        while True:
            try:
                with socket.create_connection(("127.0.0.1", port)) as asking:
                    asking.sendall(b"INFO server\r\n")
                    told = asking.recv(65536)
                # Somebody else's server may have taken the port before ours did.
                assert f"process_id:{server.pid}\r".encode() in told, "another server has the port"
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < give_up, "the server does not start"
                time.sleep(0.01)
        yield
    finally:
        server.kill()
        server.wait()


@pytest.fixture(scope="session")
def redis_port(tmp_path_factory):
    """The port of a Redis server that ends with the tests."""
    port = free_port()
    with redis_server(port, tmp_path_factory.mktemp("redis")):
        yield port


@pytest.fixture(params=["memory", "sqlite", "redis"] if FULL else ["redis"])
def url(request, tmp_path):
    """Where the locks of a test are: once in each store."""
    if request.param == "memory":
        return f"memory:{uuid.uuid4()}"
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'locks.db'}"
    return f"redis://127.0.0.1:{request.getfixturevalue('redis_port')}"


@pytest.fixture
def redis_url(redis_port):
    """The Redis server."""
    return f"redis://127.0.0.1:{redis_port}"


@pytest.fixture
def shared_url(redis_url, tmp_path, request):
    """A store that several processes share."""
    return redis_url if getattr(request, "param", "redis") == "redis" else f"sqlite:{tmp_path / 'locks.db'}"


@pytest.fixture
def name():
    """A lock nobody else knows."""
    return f"test:{uuid.uuid4()}"


@pytest.fixture
def client(url):
    """A client that is closed at the end."""
    with fencelock.connect(url) as client:
        yield client


def twin(client, module=fencelock.asyncio):
    """The same client, for coroutines or for threads."""
    twin = module.connect("memory:")
    twin._link = client._link
    return twin


def at_rest(client, name, within=20.0):
    """Waits until nobody holds the lock, nobody waits, and the client carries nothing."""
    client = twin(client, fencelock)
    give_up = time.monotonic() + within
    while True:
        state, load = client.lock(name).inspect(), client.stats()
        if not state.holders and not state.waiters and not any(load.values()):
            return
        assert time.monotonic() < give_up, f"left behind: {state}, {load}"
        time.sleep(0.01)


# What a lock's record keeps until its own end: the last holder and its hold, the newest token, since when the lock is open,
# tombstones. Tickets, holds that are shared and whoever listens are other fields.
KEPT = re.compile(rb"[hcmb]|x[0-9a-f]{32}")


def leftovers(url, name):
    """The keys left on a Redis server by the locks whose names begin so: all but those that a record keeps for a while, the results
    of jobs, and values of users."""
    if not url.startswith("redis:"):
        return []
    left = []
    with redis.Redis.from_url(url) as server:
        for key in server.keys(f"*{name}*"):
            own, _, sort = key.partition(b"}:")
            if not own.startswith(b"fencelock:{") or server.pttl(key) < 0 and not sort.startswith(b"version:"):
                left.append(key)
            elif sort.startswith(b"lock:"):
                record = server.hgetall(key).items()
                left += [key + b" " + field for field, said in record if not KEPT.fullmatch(field) and (field, said) != (b"q", b"")]
            elif not sort.startswith((b"job:", b"version:")):
                left.append(key)
    return left


def listened(url):
    """The channels of clients that somebody listens to on a Redis server."""
    if not url.startswith("redis:"):
        return set()
    with redis.Redis.from_url(url) as server:
        return set(server.pubsub_channels("fencelock:*"))


def nobody_listens(url, but):
    """Clients that nobody has any more disconnect by themselves."""
    give_up = time.monotonic() + 20
    while not listened(url) <= but:
        assert time.monotonic() < give_up, listened(url) - but
        time.sleep(0.01)
