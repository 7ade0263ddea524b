"""Completions of the core, delivered to the event loop that waits for them."""

import asyncio
import os
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, ref

from . import _native, _waiting, errors

class Loop:
    """The operations that one event loop has asked for. The core rings a descriptor that the loop watches: no thread of the core
    ever takes the interpreter's lock."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.pump = _native.Pump()
        self._waiting: dict[int, Callable[[Any], None]] = {}
        # The loop keeps this; this must not keep the loop.
        try:
            loop.add_reader(self.pump.fileno(), self._drain)
        except NotImplementedError:
            # The default loop of Windows.
            message = (
                "this event loop cannot watch a socket; use `asyncio.SelectorEventLoop`, or the interface without asyncio"
            )
            raise errors.UnsupportedError(message, False) from None

    def _drain(self) -> None:
        for operation, came in self.pump.drain():
            told = self._waiting.pop(operation, None)
            if told is not None:
                told(came)

    def watch(self, operation: int, tell: Callable[[Any], None]) -> int:
        """Calls back with the result of an operation, or its error; answers its number."""
        self._waiting[operation] = tell
        return operation

    def forget(self, operation: int) -> None:
        """Nobody wants to hear of it any more: it is given up, and what it won is given back."""
        if self._waiting.pop(operation, None) is not None:
            self.pump.forget(operation)

    async def call(self, operation: int) -> Any:
        """Waits for an operation. Cancelled at any point, it leaves nothing behind: what had ended by then and nobody has
        looked at is taken back."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Not in the future: whoever wakes the task keeps that until the task waits again, and a grant with it.
        results: list[Any] = []

        def tell(came: Any) -> None:
            if future.done():
                take_back(came)
            else:
                results.append(came)
                future.set_result(None)

        self.watch(operation, tell)
        try:
            await future
        except BaseException:
            self.forget(operation)
            # It had ended, and the task was cancelled before it could look.
            for came in results:
                take_back(came)
            raise
        came = results.pop()
        if isinstance(came, errors.FencelockError):
            raise came
        return came


async def submit(connection: _native.Connection, request: _native.Request) -> Any:
    """Asks for it, and waits."""
    loop = current()
    return await loop.call(connection.submit(loop.pump, request))


def take_back(came: Any) -> None:
    """Takes back what was granted to somebody who has gone, at once; a job's run is left to others."""
    if isinstance(came, _native.Grant):
        came.decline()


# Neither side is kept: what waits here knows its loop, and one that is closed lets go of both.
_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, ref[Loop]] = WeakKeyDictionary()


def current() -> Loop:
    """That of the running event loop."""
    running = asyncio._get_running_loop()
    if running is None:
        raise _waiting.no_loop()
    known = _loops.get(running)
    loop = known and known()
    if loop is None:
        loop = Loop(running)
        _loops[running] = ref(loop)
    return loop


def task() -> ref[asyncio.Task[Any]] | None:
    """Which task asks; ``None`` outside of an event loop. Nobody keeps it for that: one that was forgotten is to be collected."""
    try:
        asking = asyncio.current_task()
    except RuntimeError:
        return None
    return asking and ref(asking)


# A child of a fork has none of its parent's loops. Windows has no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_loops.clear)
