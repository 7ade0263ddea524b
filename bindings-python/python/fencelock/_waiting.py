"""Where a thread that waits would stop others that share it: greenlets of gevent or eventlet, and tasks of an event loop. The
holder of the lock may be one of them."""

import asyncio
import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from . import errors


def greenlets() -> Callable[[int], object] | None:
    """A function that waits until a descriptor can be read while other greenlets of this thread run; ``None`` if there are none.
    Neither library is imported here: a program that runs greenlets has done that."""
    known: Any = sys.modules.get("gevent._hub_local")
    if known is not None and (hub := known.get_hub_if_exists()) is not None:
        _check_hub(hub)
        return importlib.import_module("gevent.socket").wait_read
    hubs: Any = sys.modules.get("eventlet.hubs")
    if hubs is not None and (hub := getattr(hubs._threadlocal, "hub", None)) is not None:
        _check_hub(hub.greenlet)
        return functools.partial(hubs.trampoline, read=True)
    return None


def _check_hub(hub: object) -> None:
    if sys.modules["greenlet"].getcurrent() is hub:
        message = "a callback of the hub cannot wait; spawn a greenlet for it"
        raise errors.InvalidArgumentError(message)


def check() -> None:
    """Refuses a call that waits in a thread that runs an event loop, which stands still meanwhile. Greenlets wait otherwise, also
    where a loop is their hub."""
    if (asyncio._get_running_loop() is not None or _is_in_trio()) and greenlets() is None:
        raise refused()


def refused() -> errors.FencelockError:
    """The error of whoever would wait in an event loop."""
    instead = (
        "use `import fencelock.asyncio as fencelock`, whose methods are awaited: `async with client.lock(name)`, "
        "`await lock.acquire()`"
    )
    if _is_in_trio():
        instead = "let a thread wait: `await trio.to_thread.run_sync(...)`"
    message = f"this call waits, which would stop the event loop that this thread runs; {instead}"
    return errors.InvalidArgumentError(message)


class Blocking:
    """The base of objects whose ``with`` waits: ``async with`` is refused."""

    def __aenter__(self) -> NoReturn:
        raise refused()

    def __aexit__(self, *how: object) -> NoReturn:
        raise refused()


def _is_in_trio() -> bool:
    trio: Any = sys.modules.get("trio.lowlevel")
    return trio is not None and trio.in_trio_run()


def no_loop() -> errors.FencelockError:
    """The error of a coroutine outside of asyncio."""
    message = "coroutines of fencelock run in asyncio's event loop, and here is none"
    if _is_in_trio():
        message += "; under trio, let a thread wait: `await trio.to_thread.run_sync(lock.acquire)`"
    else:
        message += "; begin one with `asyncio.run`"
    return errors.UnsupportedError(message)
