"""Locks by name: options, then acquire."""

import json
import time
from collections.abc import Callable
from typing import Any

from . import _loop, _native, _waiting
from ._decorated import Parameters, Result, decorated
from ._link import Link
from ._values import milliseconds
from .guard import Guard
from .options import Time
from .state import State

UNSAID: Any = object()
_MOST = 1 << 53
"""More milliseconds than this are no end of a wait."""


class AnyLock:
    """The base of all that is acquired, in ``with`` or ``async with``, and as a decorator. It may be shared by threads, or by tasks;
    every block and every call has a guard of its own."""

    _awaited = False

    def __init__(
        self,
        link: Link,
        name: str,
        operation: dict[str, Any],
        verbs: tuple[str, str] = ("acquire", "try_acquire"),
        scope: Callable[[_native.Connection], int] | None = None,
    ) -> None:
        self._link, self._name, self._operation = link, name, operation
        self._acquire, self._try_acquire = verbs
        self._scope = scope
        self._requests: dict[tuple[str, int | None], _native.Request] = {}

    @property
    def name(self) -> str:
        """Its name; of several as one, their names joined by a comma."""
        return self._name

    def _patience(self, wait: Time | None) -> int:
        """How many milliseconds a first connect may take: as long as the lock is waited for. 0 is ``connect_timeout``: where somebody
        asks once, or waits without end, which would hide a wrong address."""
        most = self._operation["options"].get("wait", self._link.wait) if wait is UNSAID else milliseconds(wait)
        if isinstance(most, str):
            most = _native.check("memory:", json.dumps({"wait": most}))
        return int(most) if isinstance(most, int | float) and 0 < most < _MOST else 0

    @staticmethod
    def _left(wait: Time | None, patience: int, began: float) -> Time | None:
        """The rest of a wait of which a connect, which began then, took a part."""
        return max(0.0, patience / 1000 + began - time.monotonic()) if patience else wait

    def _ask(self, connection: _native.Connection, wait: Time | None) -> _native.Request:
        """To acquire."""
        if wait is UNSAID:
            return self._request(self._acquire, connection)
        options = {**self._operation["options"], "wait": milliseconds(wait)}
        return self._new_request(self._acquire, connection, options=options)

    def _try(self, connection: _native.Connection, wait: Time | None) -> _native.Request:
        if wait is None:
            return self._request(self._try_acquire, connection)
        return self._new_request(self._try_acquire, connection, wait=milliseconds(wait))

    def _request(self, op: str, connection: _native.Connection) -> _native.Request:
        key = op, None if self._scope is None else self._scope(connection)
        request = self._requests.get(key)
        if request is None:
            request = self._requests[key] = self._new_request(op, connection)
        return request

    def _new_request(self, op: str, connection: _native.Connection, **facts: Any) -> _native.Request:
        if self._scope is not None:
            facts["scope"] = self._scope(connection)
        return _native.Request(self._look(op, **facts))

    def _look(self, op: str, **facts: Any) -> str:
        return json.dumps({**self._operation, "op": op, **facts})

    def __call__(self, function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        """Decorates a function (of a lock of ``fencelock.asyncio``: a coroutine): every call of it runs under the lock.

        A function that calls itself waits for itself, unless the lock is ``Client.reentrant``: such a lock is entered
        again by all calls, so it keeps other clients out, but no calls of this one. A generator is refused
        (``InvalidArgumentError``): the lock would be released before its body runs.

        >>> import fencelock
        >>> client = fencelock.connect("memory:decorator")
        >>> @client.lock("report", ttl=60)
        ... def report(day):
        ...     return f"{client.names('rep')} while it reports {day}"
        >>> report("monday")
        "['report'] while it reports monday"
        """
        return decorated(function, lambda arguments, named: self, self._awaited)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name!r}>"


class Acquirable(AnyLock, _waiting.Blocking, _native.Blocks):
    """The base of all that threads acquire."""

    def _connect(self, wait: Time | None) -> tuple[_native.Connection, Time | None]:
        """Connects; the connection, and the rest of the wait."""
        patience, began = self._patience(wait), time.monotonic()
        return self._link.open(patience), self._left(wait, patience, began)

    def acquire(self, wait: Time | None = UNSAID) -> Guard:
        """Waits for the lock, for ``wait`` seconds at most (``None``: for ever) instead of the option's time; then raises
        ``LockTimeoutError``. Ctrl-C ends the wait and leaves nothing behind.

        Keep what it returns, or use ``with``: a guard that is thrown away frees its lock, with a ``ForgottenGuardWarning``."""
        connection = self._link.opened()
        if connection is None:
            connection, wait = self._connect(wait)
        granted = connection.perform(self._ask(connection, wait))
        try:
            return Guard(connection, self._name, granted)
        except BaseException:
            # Of a signal between two steps. What it interrupted is kept by its traceback.
            _loop.take_back(granted)
            raise

    def try_acquire(self, wait: Time | None = None) -> Guard | None:
        """Asks once, or waits for ``wait`` seconds at most; ``None`` if somebody else has it all the while."""
        connection = self._link.opened()
        if connection is None:
            connection, wait = self._connect(wait)
        granted = connection.perform(self._try(connection, wait))
        try:
            return None if granted is None else Guard(connection, self._name, granted)
        except BaseException:
            _loop.take_back(granted)
            raise


class Lock(Acquirable):
    """A lock by name, made by ``Client.lock`` and its like.

    >>> import fencelock
    >>> with fencelock.connect("memory:lock") as client:
    ...     lock = client.lock("orders:42", ttl=10, wait=5)
    ...     with lock as guard:
    ...         lock.try_acquire() is None
    True
    """

    def is_locked(self) -> bool:
        """Whether anybody holds the lock now; of a semaphore, any permit. By the time of the answer that may have changed."""
        return self._link.perform(self._look("is_locked"))

    def inspect(self) -> State:
        """The holders of the lock and its waiters."""
        return State.from_json(self._link.perform(self._look("inspect")))


class All(Acquirable):
    """Several mutexes as one: all or nothing, in a global order.

    >>> import fencelock
    >>> with fencelock.connect("memory:all") as client:
    ...     with client.all(["from", "to"], ttl=10) as guard:
    ...         sorted(guard.tokens)
    ['from', 'to']
    """
