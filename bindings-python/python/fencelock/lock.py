"""Locks by name: options, then acquire."""

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine, Iterable
from types import FrameType, TracebackType
from typing import Any
from weakref import ref

from . import _loop, _native, _waiting, errors
from ._decorated import Parameters, Result, decorated
from ._link import Link
from ._values import milliseconds
from .guard import AsyncGuard, Guard
from .options import Time
from .state import State

_UNSAID: Any = object()


class Acquirable(_native.Blocks):
    """Whatever can be acquired: by threads, by coroutines, in ``with`` and in ``async with``, and as a decorator. It may be
    shared by all of them; every block and every call has a guard of its own."""

    def __init__(self, link: Link, name: str, operation: dict[str, Any]) -> None:
        self._link, self._name, self._operation = link, name, operation
        self._requests: dict[str, _native.Request] = {}
        # The frame and the task of every block that was entered. A frame is kept, or another one may come to lie where it was.
        self._blocks: list[tuple[FrameType | None, ref[asyncio.Task[Any]] | None, AsyncGuard]] = []

    def acquire(self, wait: Time | None = _UNSAID) -> Guard:
        """Waits for the lock, for ``wait`` seconds at most (``None``: for ever) instead of the option's time; then raises
        ``LockTimeoutError``. Ctrl-C ends the wait and leaves nothing behind.

        Keep what it returns, or use ``with``: a guard that is thrown away frees its lock, with a ``ForgottenGuardWarning``. In a
        thread that runs an event loop it takes a free lock only, and refuses to wait (``InvalidArgumentError``): that would
        stop the loop, and the holder with it."""
        connection = self._link.open()
        # A wait that is over at once is none.
        patience = self._operation["options"].get("wait", _UNSAID) if wait is _UNSAID else wait
        may_wait = milliseconds(patience) == 0 or not _waiting.is_in_loop()
        granted = connection.perform(self._ask("acquire" if may_wait else "try_acquire", connection, wait))
        try:
            if granted is None:
                what = f"`{self._name}` is held by somebody else, and waiting for it here"
                raise _waiting.refused(what, "use `async with`, or `await lock.acquire_async()`")
            return Guard(connection, self._name, granted)
        except BaseException:
            # Of a signal between two steps. What it interrupted is kept by its traceback.
            _loop.take_back(granted)
            raise

    def try_acquire(self, wait: Time | None = None) -> Guard | None:
        """Asks once, or waits for ``wait`` seconds at most; ``None`` if somebody else has it all the while. In a thread that runs an event
        loop it refuses to wait, as ``acquire`` does."""
        if milliseconds(wait) and _waiting.is_in_loop():
            what = f"waiting for `{self._name}` here"
            raise _waiting.refused(what, "use `await lock.try_acquire_async(wait)`")
        connection = self._link.open()
        granted = connection.perform(self._try(connection, wait))
        try:
            return None if granted is None else Guard(connection, self._name, granted)
        except BaseException:
            _loop.take_back(granted)
            raise

    async def acquire_async(self, wait: Time | None = _UNSAID) -> AsyncGuard:
        """The same as ``acquire``, awaited. Cancelled at any point, it leaves nothing behind."""
        connection = await self._link.open_async()
        granted = await self._submit(connection, self._ask("acquire", connection, wait))
        return AsyncGuard(connection, self._name, granted)

    async def try_acquire_async(self, wait: Time | None = None) -> AsyncGuard | None:
        """The same as ``try_acquire``, awaited."""
        connection = await self._link.open_async()
        granted = await self._submit(connection, self._try(connection, wait))
        return None if granted is None else AsyncGuard(connection, self._name, granted)

    async def _submit(self, connection: _native.Connection, request: _native.Request) -> Any:
        loop = _loop.current()
        return await loop.call(connection.submit(loop.pump, request))

    def _try(self, connection: _native.Connection, wait: Time | None) -> _native.Request:
        if wait is None:
            return self._ask("try_acquire", connection)
        asked = {**self._operation, **self._facts(connection), "op": self._verb("try_acquire")}
        return _native.Request(json.dumps({**asked, "wait": milliseconds(wait)}))

    def _ask(self, verb: str, connection: _native.Connection, wait: Any = _UNSAID) -> _native.Request:
        facts = self._facts(connection)
        plain = wait is _UNSAID and not facts
        request = self._requests.get(verb) if plain else None
        if request is None:
            options = self._operation["options"]
            if wait is not _UNSAID:
                options = {**options, "wait": milliseconds(wait)}
            asked = {**self._operation, **facts, "op": self._verb(verb), "options": options}
            request = _native.Request(json.dumps(asked))
            if plain:
                self._requests[verb] = request
        return request

    def _facts(self, connection: _native.Connection) -> dict[str, Any]:
        """What belongs to one connection, and so into no text that is kept."""
        return {}

    def _verb(self, verb: str) -> str:
        return verb

    def __aenter__(self) -> Coroutine[Any, Any, AsyncGuard]:
        # Called in the block's own frame, where it is left again, whichever task runs it.
        return self._enter(sys._getframe(1))

    async def _enter(self, frame: FrameType) -> AsyncGuard:
        guard = await self.acquire_async()
        try:
            await guard.__aenter__()
        except BaseException:
            # The client was closed. The block does not begin.
            guard.forget()
            raise
        # An exit stack leaves in another frame. Its own, kept, would keep all that called it.
        kept = None if frame.f_globals.get("__name__") == "contextlib" else frame
        self._blocks.append((kept, _loop.task(), guard))
        return guard

    def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Coroutine[Any, Any, None]:
        return self._leave(sys._getframe(1)).__aexit__(kind, error, trace)

    def _leave(self, frame: FrameType) -> AsyncGuard:
        """The guard of this frame's innermost block: a generator may be ended by another task than began it, a coroutine by
        whoever collects it. An exit stack enters in one frame and leaves in another: then it is this task's, or the only one.
        """
        task = _loop.task()
        of_frame = [entered for entered in self._blocks if entered[0] is frame]
        of_task = [entered for entered in self._blocks if entered[1] == task]
        known = of_frame or of_task or self._blocks
        if known is self._blocks and len(known) != 1:
            message = (
                "another task entered this block, and others are in blocks of this lock; "
                "use `async with await lock.acquire_async()`"
            )
            raise errors.InvalidArgumentError(message, fields={"argument": "async with"})
        entered = known[-1]
        self._blocks.remove(entered)
        return entered[2]

    def __call__(self, function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        """Decorates a function or a coroutine: every call of it runs under the lock.

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
        return decorated(function, lambda arguments, named: self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name!r}>"


class Lock(Acquirable):
    """A lock by name, made by ``Client.lock`` and its like.

    >>> import fencelock
    >>> with fencelock.connect("memory:lock") as client:
    ...     lock = client.lock("orders:42", ttl=10, wait=5)
    ...     with lock as guard:
    ...         lock.try_acquire() is None
    True
    """

    def __init__(
        self,
        link: Link,
        name: str,
        operation: dict[str, Any],
        scope: Callable[[_native.Connection], int] | None = None,
    ) -> None:
        super().__init__(link, name, {"name": name, **operation})
        self._scope = scope

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    def is_locked(self) -> bool:
        """Whether anybody holds the lock now; of a semaphore, any permit. By the time of the answer that may have changed."""
        return self._link.perform(self._look("is_locked"))

    async def is_locked_async(self) -> bool:
        """The same, awaited."""
        return await self._link.perform_async(self._look("is_locked"))

    def _look(self, op: str) -> str:
        return json.dumps({**self._operation, "op": op})

    def inspect(self) -> State:
        """Who holds the lock and who waits."""
        return State.from_json(self._link.perform(self._inspection()))

    async def inspect_async(self) -> State:
        """The same, awaited."""
        return State.from_json(await self._link.perform_async(self._inspection()))

    def _inspection(self) -> str:
        asked = {"op": "inspect", "name": self._name, "options": self._operation["options"]}
        return json.dumps(asked)

    def _facts(self, connection: _native.Connection) -> dict[str, Any]:
        return {} if self._scope is None else {"scope": self._scope(connection)}


class All(Acquirable):
    """Several mutexes as one: all or nothing, in a global order.

    >>> import fencelock
    >>> with fencelock.connect("memory:all") as client:
    ...     with client.all(["from", "to"], ttl=10) as guard:
    ...         sorted(guard.tokens)
    ['from', 'to']
    """

    def __init__(self, link: Link, names: Iterable[str], options: dict[str, Any]) -> None:
        if isinstance(names, str):
            message = f"these are names: give a list of them, such as [{names!r}]"
            raise errors.InvalidArgumentError(message, fields={"argument": "names"})
        listed = list(names)
        super().__init__(link, ", ".join(listed), {"names": listed, "options": options})

    def _verb(self, verb: str) -> str:
        return f"{verb}_all"
