"""A node of a fleet that writes a report: of all nodes, one writes it in each period.

    pip install fencelock
    python scheduled_job.py --name node-1 --period 10 --for 60          (from several terminals)

``--url`` is the store, by default a SQLite file in this folder. Each run appends a line to ``--output``: its instant in
milliseconds since 1970, its token, the node. ``--work`` is how long a run takes. All times are seconds. scheduled_job.rs is the
same, and their nodes are one fleet.
"""

import argparse
import os
import sys
import time

import fencelock


def report(run: fencelock.Run, asked: argparse.Namespace) -> None:
    """The run: a line in the output, and what it takes besides."""
    line = f"{round(run.instant * 1000)} {run.token} {asked.name}\n"
    # In one write, so that lines of several nodes never mix.
    with open(asked.output, "ab", buffering=0) as output:
        output.write(line.encode())
    time.sleep(asked.work)


def take_part(asked: argparse.Namespace, client: fencelock.Client) -> int:
    """Asks for runs until the time is over, and answers how many there were."""
    # A run that has died counts as dead after `ttl`: well before the next one is due.
    ttl = min(30, asked.period / 4)
    job = client.job("fencelock-example:report", asked.period, ttl=ttl, info=asked.name)
    runs, end = 0, time.monotonic() + asked.time
    while time.monotonic() < end:
        try:
            # False, with the reason: another node runs it, or it was run in this period.
            if run := job.start():
                with run:
                    report(run, asked)
                runs += 1
        except (fencelock.FencelockError, OSError) as error:
            # The run failed or was lost, or the store is away. The next one is due all the same.
            print(f"{asked.name}: {error}", file=sys.stderr)
        # The store's clock says when a run is due, so no node has to know: it only asks often enough.
        time.sleep(asked.period / 10)
    return runs


def main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("--url", default="sqlite:jobs.db")
    words.add_argument("--name", default=f"node-{os.getpid()}")
    words.add_argument("--period", type=float, default=10)
    words.add_argument("--for", type=float, default=60, dest="time")
    words.add_argument("--work", type=float, default=0)
    words.add_argument("--output", default="runs.txt")
    asked = words.parse_args()
    with fencelock.connect(asked.url) as client:
        print(f"{asked.name} takes part", flush=True)
        print(f"{asked.name} had {take_part(asked, client)} runs")


if __name__ == "__main__":
    main()
