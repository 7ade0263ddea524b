"""The account, and the three ways to deduct from it."""

import sqlite3
import time
from argparse import Namespace

import fencelock

# What a deduction takes between the look at the balance and the note of it.
MOMENT = 0.002
NAME = "fencelock-example:balance"


class ByVersion:
    """The account is one value, so that all of it changes at once."""

    def __init__(self, client: fencelock.Client, opened: int) -> None:
        # With eight that change it all the time, somebody else is faster more often than usual.
        self.account = client.version(NAME, retries=100)
        self.account.compare_and_set(None, {"opened": opened, "balance": opened, "paid": 0})

    def deduct(self, amount: int) -> bool:
        def change(books: dict) -> dict | None:
            """Called again with what is there by then, if somebody else was faster. ``None``: it is not covered."""
            if books["balance"] < amount:
                return None
            return {**books, "balance": books["balance"] - amount, "paid": books["paid"] + amount}

        return self.account.update(change) is not None

    def books(self) -> tuple[int, int, int]:
        books = self.account.read().value
        return books["opened"], books["balance"], books["paid"]


class Unlocked:
    """The account in a SQLite file: what is left, and every payment."""

    def __init__(self, file: str, opened: int) -> None:
        self.book = sqlite3.connect(file, timeout=60, isolation_level=None)
        with self.book:
            self.book.execute("BEGIN IMMEDIATE")
            self.book.execute("CREATE TABLE IF NOT EXISTS account (opened INTEGER, balance INTEGER, fence INTEGER)")
            self.book.execute("CREATE TABLE IF NOT EXISTS payments (amount INTEGER)")
            first = "INSERT INTO account SELECT :opened, :opened, 0 WHERE NOT EXISTS (SELECT * FROM account)"
            self.book.execute(first, {"opened": opened})

    def deduct(self, amount: int) -> bool:
        # Without a lock there is no token: all write as the same holder.
        return self.read_and_write(amount, 0) is True

    def read_and_write(self, amount: int, token: int) -> bool | None:
        """Whether the amount was paid. ``None``: a newer holder has come, and nothing is written."""
        # Reading leaves the token too: an older holder that writes after this would be undone by what is made of it here.
        read = "UPDATE account SET fence = :token WHERE fence <= :token RETURNING balance"
        rows = self.book.execute(read, {"token": token}).fetchall()
        if not rows:
            return None
        balance = rows[0][0]
        if balance < amount:
            return False
        time.sleep(MOMENT)
        # The balance and the payment are one change: a crash leaves both or neither.
        with self.book:
            self.book.execute("BEGIN IMMEDIATE")
            write = "UPDATE account SET balance = ? WHERE fence <= ?"
            if self.book.execute(write, [balance - amount, token]).rowcount == 0:
                return None
            self.book.execute("INSERT INTO payments VALUES (?)", [amount])
        return True

    def books(self) -> tuple[int, int, int]:
        paid = "(SELECT coalesce(sum(amount), 0) FROM payments)"
        return self.book.execute(f"SELECT opened, balance, {paid} FROM account").fetchone()


class Locked(Unlocked):
    """The same with one worker at a time."""

    def __init__(self, client: fencelock.Client, file: str, opened: int) -> None:
        super().__init__(file, opened)
        self.lock = client.lock(NAME)

    def deduct(self, amount: int) -> bool:
        while True:
            guard = self.lock.acquire()
            try:
                paid = self.read_and_write(amount, guard.token)
            finally:
                # The book has judged already: whether the lease has ended since the write does not matter.
                guard.release()
            if paid is not None:
                return paid


def opened(client: fencelock.Client, asked: Namespace) -> ByVersion | Unlocked:
    """The account, opened with the balance asked for unless it is there."""
    if asked.how == "version":
        return ByVersion(client, asked.balance)
    if asked.how == "lock":
        return Locked(client, asked.book, asked.balance)
    return Unlocked(asked.book, asked.balance)
