"""Ctrl-C, exits and what they leave."""

import signal
import subprocess
import sys
import textwrap
import time

import pytest
from conftest import at_rest

import fencelock


def script(text, *words):
    """Starts a program over the package, and waits until it says so."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    return process


def test_ctrl_c_ends_a_wait(redis_url, name):
    with fencelock.connect(redis_url) as client:
        with client.lock(name):
            process = script(
                """
                import sys, fencelock
                client = fencelock.connect(sys.argv[1]).open()
                print("ready", flush=True)
                try:
                    client.lock(sys.argv[2]).acquire()
                except KeyboardInterrupt:
                    load = client.load()
                    print("interrupted", load["guards"], flush=True)
                """,
                redis_url,
                name,
            )
            give_up = time.monotonic() + 5
            while not client.lock(name).inspect().waiters:
                assert time.monotonic() < give_up
                time.sleep(0.01)
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "interrupted 0\n", process.stderr.read()
            assert time.monotonic() - began < 0.2 + 0.3, "0.2 s, and what a busy machine takes to start a line"
            process.wait(5)
        at_rest(client, name)


ENDS = {
    "return": "",
    "raise": "raise SystemExit(3)",
    "exit": "sys.exit(0)",
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("way", ["threads", "asyncio"])
def test_an_exit_with_held_guards_frees_them(redis_url, name, end, way):
    take = {
        "threads": "guard = client.lock(sys.argv[2]).acquire()",
        "asyncio": "guard = asyncio.run(client.lock(sys.argv[2]).acquire_async())",
    }[way]
    program = f"import asyncio, sys, fencelock\nclient = fencelock.connect(sys.argv[1])\n{take}\nprint('ready', flush=True)\n{ENDS[end]}"
    with fencelock.connect(redis_url) as client:
        began = time.monotonic()
        process = script(program, redis_url, name)
        process.wait(10)
        client.lock(name).acquire(wait=1).release()
        assert time.monotonic() - began < 10


STOPPED = """
import atexit, os, signal, subprocess, socket, sys, time
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
program = os.environ.get("FENCELOCK_REDIS_SERVER", "redis-server")
server = subprocess.Popen([program, "--port", str(port), "--save", ""], stdout=subprocess.DEVNULL)
# What is registered first is done last: the server is there, and silent, when the package parts.
atexit.register(server.kill)
while True:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        break
    except OSError:
        time.sleep(0.01)
import fencelock
guard = fencelock.connect(f"redis://127.0.0.1:{port}").lock("x").acquire()
others = [fencelock.connect(sys.argv[1]).lock(f"{sys.argv[2]}{number}").acquire() for number in range(5)]
server.send_signal(signal.SIGSTOP)
print("ready", flush=True)
"""
"""Holds locks, one of them on a server of its own that has stopped by the time the program exits."""


def test_an_exit_without_a_store_waits_a_second_for_all(redis_url, name):
    process = script(STOPPED, redis_url, name)
    began = time.monotonic()
    process.wait(10)
    assert time.monotonic() - began < 1 + 2, "a second for the store, and what an interpreter takes to end"
    with fencelock.connect(redis_url) as client:
        for number in range(5):
            client.lock(f"{name}{number}").acquire(wait=1).release()
