"""One client of a store, for whoever asks: a thread that waits, or a coroutine."""

import asyncio
import atexit
import contextlib
import json
import os
import sys
import threading
import time
from typing import Any
from weakref import WeakSet

from . import _loop, _native, _waiting, errors, event

_PARTING = 1.0
"""How many seconds an interpreter that exits gives its clients to free what they hold."""
_HEARING = 1.0
"""How many seconds a client that closes gives its observer to hear the last events."""


class Link:
    """A client, connected at its first use, and again in the child of a fork."""

    def __init__(
        self, url: str, options: dict[str, Any], observer: event.Observer | None = None
    ) -> None:
        if observer is not None:
            event.check(observer)
        app = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
        self._arguments = url, json.dumps(options), app or "python"
        self.wait: int | None = _native.check(*self._arguments[:2])
        """How many milliseconds its locks are waited for by default; ``None``: for ever."""
        self._observer = observer
        self._telling: event.Telling | None = None
        self._connection = self._new()
        _links.add(self)

    def _new(self) -> _native.Connection:
        connection = _native.Connection(*self._arguments)
        _connections.add(connection)
        return connection

    def here(self) -> _native.Connection:
        """The connection of this very process."""
        connection = self._connection
        if not connection.is_here():
            connection, self._telling = self._new(), None
            self._connection = connection
        return connection

    def connected(self) -> _native.Connection | None:
        """The connection, if it is there."""
        # None is open that another process made.
        connection = self._connection
        return connection if connection.is_open() else None

    def opened(self) -> _native.Connection | None:
        """The same for a call that waits; refused where that would stop an event loop."""
        _waiting.check()
        return self.connected()

    def open(self, wait: int = 0) -> _native.Connection:
        """Connects within so many milliseconds, or ``connect_timeout`` if that is 0, and waits for that."""
        connection = self.opened()
        if connection is None:
            connection = self.here()
            self._observe(connection)
            connection.open(wait)
        return connection

    async def open_async(self, wait: int = 0) -> _native.Connection:
        """The same, awaited."""
        connection = self.connected()
        if connection is None:
            connection = self.here()
            self._observe(connection)
            loop = _loop.current()
            await loop.call(connection.submit_open(loop.pump, wait))
        return connection

    def _observe(self, connection: _native.Connection) -> None:
        """Before anything can happen, by whoever comes first."""
        if self._observer is None and not event.has_threads():
            return
        if (feed := connection.feed(self._observer is not None or event.logs_all())) is not None:
            self._telling = event.Telling(feed, self._observer)

    def perform(self, operation: str) -> Any:
        """Does an operation and waits for its result."""
        return self.open().perform(_native.Request(operation))

    async def perform_async(self, operation: str) -> Any:
        """The same, awaited."""
        return await _loop.submit(await self.open_async(), _native.Request(operation))

    def close(self) -> None:
        """Frees what is held and disconnects."""
        try:
            _native.close_all([self.here()], 86_400.0)
        finally:
            if (thread := self._end_telling()) is not None:
                thread.join(_HEARING)

    async def close_async(self) -> None:
        """The same, awaited."""
        try:
            if self.here().is_open():
                await self.perform_async('{"op":"close"}')
        finally:
            thread = self._end_telling()
        if thread is not None:
            await asyncio.to_thread(thread.join, _HEARING)

    def abandon(self) -> None:
        """The same without waiting for it."""
        self.here().abandon()
        self._end_telling()

    def _end_telling(self) -> threading.Thread | None:
        return self._telling.end() if self._telling is not None else None


_links: WeakSet[Link] = WeakSet()
# A guard that outlives its client keeps its connection.
_connections: WeakSet[_native.Connection] = WeakSet()


@atexit.register
def _part() -> None:
    """Frees all that is still held when the interpreter exits, if the store answers soon; else the leases end."""
    end = time.monotonic() + _PARTING
    # Nobody is there to hear of a refusal, and a lease ends by itself.
    with contextlib.suppress(errors.FencelockError):
        _native.close_all(list(_connections), _PARTING)
    event.part(end)


def _renew() -> None:
    """In the child of a fork, before there can be a second thread."""
    for link in list(_links):
        link.here()


# Windows has no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_native.before_fork,
        after_in_parent=_native.after_fork,
        after_in_child=_native.after_fork,
    )
    # Behind that: it may open a file.
    os.register_at_fork(after_in_child=_renew)
