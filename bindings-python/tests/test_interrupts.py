"""Signals at any moment around a grant: whoever is interrupted has nothing, and nothing is left."""

import subprocess
import sys

from conftest import FULL, at_rest

import fencelock

PROGRAMS = 10
INTERRUPTS = 500 if FULL else 50

PROGRAM = """
import os, random, signal, sys, threading, time
import fencelock

url, name, interrupts, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
draw = random.Random(seed)
mine, other = fencelock.connect(url).open(), fencelock.connect(url).open()
waits = {
    "acquire": mine.lock(name).acquire,
    "all": mine.all([name]).acquire,
    "elect": mine.elect(name).acquire,
}

def release(held, wait):
    time.sleep(wait)
    held.release()

def interrupt(wait):
    time.sleep(wait)
    os.kill(os.getpid(), signal.SIGINT)

interrupted = granted = 0
# It ends also where a signal does nothing.
while interrupted < interrupts and granted < 10 * interrupts:
    # Whatever an interrupted wait had left would be in the way here.
    held = other.lock(name).acquire(wait=5)
    wait = waits[draw.choice(sorted(waits))]
    threads = [
        threading.Thread(target=release, args=(held, 0.03)),
        threading.Thread(target=interrupt, args=(draw.random() * 0.06,)),
    ]
    guard = None
    try:
        for thread in threads:
            thread.start()
        guard = wait()
        granted += 1
        time.sleep(10)
    except KeyboardInterrupt:
        interrupted += guard is None
    for thread in threads:
        thread.join()
    if guard is not None:
        guard.release()
    del held, guard

# A run is asked for once: the signal comes before its grant, or after it.
for number in range(interrupted + granted):
    run, job = None, mine.job(f"{name}:job:{number}", period=60)
    thread = threading.Thread(target=interrupt, args=(draw.random() * 0.002,))
    try:
        thread.start()
        run = job.start(at=1_800_000_000)
        time.sleep(10)
    except KeyboardInterrupt:
        pass
    thread.join()
    if run is not None:
        run.succeed()
    del run

give_up = time.monotonic() + 5
while any(mine.load().values()) or any(other.load().values()):
    assert time.monotonic() < give_up, (mine.load(), other.load())
    time.sleep(0.01)
print(interrupted, granted)
"""


def test_a_signal_around_a_grant_leaves_nothing(redis_url, name):
    programs = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore::ResourceWarning", "-c", PROGRAM, redis_url, f"{name}:{number}", str(INTERRUPTS), str(number)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(PROGRAMS)
    ]
    granted = 0
    for program in programs:
        said, complaint = program.communicate(timeout=600)
        assert program.returncode == 0, complaint
        interrupted, more = map(int, said.split())
        assert interrupted >= INTERRUPTS, (interrupted, more)
        granted += more
    # The other way of ending was seen, too.
    assert granted > PROGRAMS, granted
    with fencelock.connect(redis_url) as client:
        for number in range(PROGRAMS):
            at_rest(client, f"{name}:{number}")
