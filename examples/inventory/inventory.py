"""The last lamps of a shop, sold by eight clerks at once: with no lock, and under a lock.

    pip install fencelock redis
    python inventory.py redis://127.0.0.1 etcd://127.0.0.1

The first URL is the shop's, a Redis server. The second is the store of the locks, by default the same.

Selling is looking at the stock, taking a moment (a price, a payment), and writing it down. Whoever else looks in that moment
sells the same lamp again. inventory.rs tells more.
"""

import sys
import time
from multiprocessing import Process

import redis

import fencelock

LAMPS, CUSTOMERS, CLERKS = 50, 80, 8
MOMENT = 0.002
STOCK, SOLD = "fencelock-example:python:stock", "fencelock-example:python:sold"


def look_and_write(shop: redis.Redis) -> None:
    stock = int(shop.get(STOCK))
    if stock < 1:
        return
    time.sleep(MOMENT)
    shop.set(STOCK, stock - 1)
    shop.incr(SOLD)


def clerk(url: str, store: str, way: str) -> None:
    """One clerk: a process of its own, as in a real shop."""
    shop = redis.Redis.from_url(url)
    with fencelock.connect(store) as locks:
        for _ in range(CUSTOMERS // CLERKS):
            if way == "no lock":
                look_and_write(shop)
            else:
                with locks.lock("fencelock-example:python:lamps", ttl=10):
                    look_and_write(shop)


def day(url: str, store: str, way: str) -> int:
    shop = redis.Redis.from_url(url)
    shop.mset({STOCK: LAMPS, SOLD: 0})
    clerks = [Process(target=clerk, args=(url, store, way)) for _ in range(CLERKS)]
    for one in clerks:
        one.start()
    for one in clerks:
        one.join()
        assert one.exitcode == 0
    sold = int(shop.get(SOLD))
    shop.delete(STOCK, SOLD)
    return sold


def main() -> None:
    url = sys.argv[1] if len(sys.argv) > 1 else "redis://127.0.0.1"
    store = sys.argv[2] if len(sys.argv) > 2 else url
    print(f"{LAMPS} lamps, {CUSTOMERS} customers, {CLERKS} clerks")
    for way in ("no lock", "lock"):
        begin = time.monotonic()
        sold = day(url, store, way)
        took = round((time.monotonic() - begin) * 1000)
        print(f"{way:8} sold {sold:3}, oversold {max(0, sold - LAMPS):3}, {took} ms")


if __name__ == "__main__":
    main()
