"""An account that eight workers deduct from at once: by a version, under a lock, and with neither.

    pip install fencelock
    python balance.py --how version          (or lock, or none)

``--url`` is the store of the version and of the lock, ``--book`` the SQLite file that the other two ways keep the account in. By
default both lie in a folder of their own. balance.rs tells more, and deducts from the same account if both are given.
"""

import argparse
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor

import account
import fencelock

# It does not divide the balance, so in the end there is something left that covers no deduction.
AMOUNT = 3


def work(asked: argparse.Namespace) -> tuple[int, int]:
    """One worker, a process of its own: what it was paid, and how often it was refused."""
    with fencelock.connect(asked.url) as client:
        mine = account.opened(client, asked)
        covered = [mine.deduct(AMOUNT) for _ in range(asked.times)]
    return AMOUNT * covered.count(True), covered.count(False)


def deduct(asked: argparse.Namespace) -> bool:
    """All the work, and whether the books add up after it."""
    with ProcessPoolExecutor(asked.workers) as pool:
        ours = list(pool.map(work, [asked] * asked.workers))
    with fencelock.connect(asked.url) as client:
        opened, balance, paid = account.opened(client, asked).books()
    # Others may have deducted too: the books have what they were paid besides.
    exact = balance >= 0 and paid + balance == opened and sum(payments for payments, _ in ours) <= paid
    refused, verdict = sum(refusals for _, refusals in ours), "exact" if exact else "not exact"
    print(f"{asked.how}: paid out {paid}, refused {refused}, left {balance} of {opened}, {verdict}")
    return exact


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        words = argparse.ArgumentParser()
        words.add_argument("--how", choices=["version", "lock", "none"], default="version")
        words.add_argument("--url", default=f"sqlite:{folder}/locks.db")
        words.add_argument("--book", default=f"{folder}/book.db")
        words.add_argument("--balance", type=int, default=100)
        words.add_argument("--workers", type=int, default=8)
        words.add_argument("--times", type=int, default=10)
        exact = deduct(words.parse_args())
    sys.exit(0 if exact else 1)


if __name__ == "__main__":
    main()
