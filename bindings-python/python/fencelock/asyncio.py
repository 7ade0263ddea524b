"""The same for coroutines: the names of ``fencelock``, all awaited.

    >>> import asyncio
    >>> import fencelock.asyncio as fencelock
    >>> async def charge():
    ...     client = await fencelock.connect("memory:asyncio")  # or async with fencelock.connect(...) as client
    ...     async with client.lock("orders:42", ttl=30, wait=5) as guard:
    ...         print("charging with a fencing token:", guard.token > 0)
    ...     await client.close()
    >>> asyncio.run(charge())
    charging with a fencing token: True

What does not wait is not awaited: ``guard.is_held``, ``guard.token``, ``client.lock(name)``. Cancelled at any point, a call leaves
nothing behind.
"""

import asyncio
import itertools
import json
import sys
import time
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from datetime import timedelta
from types import FrameType, TracebackType
from typing import Any, Literal, Self, Unpack, overload

from . import _loop, _native, _shared, errors
from ._decorated import Parameters, Result
from ._link import Link
from ._shared import *  # noqa: F403
from ._values import milliseconds
from .client import AnyClient, adopting, breaking, holders
from .gate import writing
from .guard import Hold, tell
from .job import AnyJob
from .lock import UNSAID, AnyLock
from .options import Time
from .version import AnyVersion

__all__ = ["All", "Client", "Election", "Gate", "Guard", "Job", "Lock", "Run", "Version", "connect"]
__all__ += _shared.__all__


def connect(url: str, *, on_event: Observer | None = None, **options: Unpack[ClientOptions]) -> "Client":
    """A client as ``fencelock.connect`` makes it. Awaited, or in ``async with``, it connects at once, otherwise at its first use.

    Coroutines are handed events by their loop:

    >>> async def watch():
    ...     loop, events = asyncio.get_running_loop(), asyncio.Queue()
    ...     tell = lambda event: loop.call_soon_threadsafe(events.put_nowait, event)
    ...     async with connect("memory:events", on_event=tell) as client:
    ...         async with client.lock("orders:42"):
    ...             return str((await events.get()).kind)
    >>> asyncio.run(watch())
    'granted'
    """
    return Client(url, on_event=on_event, **options)


class Guard(Hold):
    """A guard for coroutines. In ``async with`` the task is cancelled when the lock is lost, and the block raises
    ``LockLostError``.

    >>> import asyncio, fencelock.asyncio as fencelock
    >>> async def charge():
    ...     async with fencelock.connect("memory:guard") as client:
    ...         async with client.lock("orders:42") as guard:
    ...             return guard.is_held
    >>> asyncio.run(charge())
    True
    """

    __slots__ = ("_cancelling", "_events", "_task", "_told", "_watch")

    async def release(self) -> Released:
        """Frees the lock and tells how that went. Cancelled, it frees the lock all the same."""
        return await self._end(False)

    async def extend(self, ttl: float | timedelta) -> None:
        """Pushes the end of the lease to at least now + ``ttl``, which is its length from now on. Never shortens it."""
        await self._perform(self._ask("extend", ttl=milliseconds(ttl)))

    async def transfer(self) -> str:
        """As ``fencelock.Guard.transfer``."""
        return await self._perform(self._ask("transfer"))

    async def wait_lost(self) -> bool:
        """Waits for the end of the hold: true when it was lost, false when it was given back."""
        try:
            await self._perform(self._ask("lost"))
        except errors.NotHeldError:
            return False
        return True

    async def _perform(self, request: _native.Request) -> Any:
        return await _loop.submit(self._connection, request)

    async def _end(self, succeeded: bool) -> Released:
        """Gives the guard back; a run of a job with how it went."""
        if not self._grant.is_here():
            return Released.ALREADY_LOST
        loop = _loop.current()
        return Released(await loop.call(self._grant.submit_release(loop.pump, succeeded)))

    async def __aenter__(self) -> Self:
        self.check()
        task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"
        # The block keeps its guard. That must not keep the task: one that is forgotten with its loop is to be collected.
        self._events, self._task, self._told = _loop.current(), weakref.ref(task), False
        self._cancelling = task.cancelling()
        submitted = self._connection.submit(self._events.pump, self._ask("lost"))
        self._watch = self._events.watch(submitted, self._ended)
        return self

    def _ended(self, came: Any) -> None:
        """The hold has ended. If it was lost, the block must not go on: as ``asyncio.timeout`` does, its task is
        cancelled, and the cancellation becomes an error at the block's end."""
        if not isinstance(came, errors.FencelockError):
            self._told = True
            if (task := self._task()) is not None:
                task.cancel()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._events.forget(self._watch)
        if self._told:
            lost = self._why_lost()
            self.forget()
            task = self._task()
            ours = task is not None and task.uncancel() <= self._cancelling
            if kind is None or (ours and issubclass(kind, asyncio.CancelledError)):
                raise lost from error
            tell(lost, error)
        elif kind is not None and issubclass(kind, GeneratorExit):
            # It is being closed, perhaps by whoever collects it, on any thread and with its loop closed: nobody can wait.
            self.forget()
        elif not self._grant.is_given_back():
            released = await self._end(kind is None)
            if released is Released.ALREADY_LOST and self._grant.is_here():
                tell(errors.lost_before_release(self._name, self.token), error)


class Run(Guard):
    """A run of a job, for coroutines: a guard that ends with how it went. A ``release`` is a failure."""

    __slots__ = ()

    def __bool__(self) -> Literal[True]:
        return True

    @property
    def instant(self) -> float:
        """The instant it is scheduled for, in seconds since 1970."""
        return self._grant.instant

    async def succeed(self) -> Released:
        """It has succeeded: this instant is not run again."""
        return await self._end(True)

    async def fail(self) -> Released:
        """It has failed: this instant is not run again, and the failure can be seen."""
        return await self._end(False)


class Acquirable(AnyLock):
    """The base of all that tasks acquire."""

    _awaited = True

    def __init__(self, *what: Any, **more: Any) -> None:
        super().__init__(*what, **more)
        # The frame and the task of every block that was entered. A frame is kept, or another one may come to lie where it was.
        self._blocks: list[tuple[FrameType | None, weakref.ref[asyncio.Task[Any]] | None, Guard]] = []

    async def _connect(self, wait: Time | None) -> tuple[_native.Connection, Time | None]:
        """Connects, if need be; the connection, and the rest of the wait."""
        if (connection := self._link.connected()) is not None:
            return connection, wait
        patience, began = self._patience(wait), time.monotonic()
        return await self._link.open_async(patience), self._left(wait, patience, began)

    async def acquire(self, wait: Time | None = UNSAID) -> Guard:
        """Waits for the lock, for ``wait`` seconds at most (``None``: for ever) instead of the option's time; then raises
        ``LockTimeoutError``. Keep what it returns, or use ``async with``."""
        connection, wait = await self._connect(wait)
        granted = await _loop.submit(connection, self._ask(connection, wait))
        return Guard(connection, self._name, granted)

    async def try_acquire(self, wait: Time | None = None) -> Guard | None:
        """Asks once, or waits for ``wait`` seconds at most; ``None`` if somebody else has it all the while."""
        connection, wait = await self._connect(wait)
        granted = await _loop.submit(connection, self._try(connection, wait))
        return None if granted is None else Guard(connection, self._name, granted)

    def __aenter__(self) -> Coroutine[Any, Any, Guard]:
        # Called in the block's own frame, where it is left again, whichever task runs it.
        return self._enter(sys._getframe(1))

    async def _enter(self, frame: FrameType) -> Guard:
        guard = await self.acquire()
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

    def _leave(self, frame: FrameType) -> Guard:
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
                "use `async with await lock.acquire()`"
            )
            raise errors.InvalidArgumentError(message, fields={"argument": "async with"})
        entered = known[-1]
        self._blocks.remove(entered)
        return entered[2]


class Lock(Acquirable):
    """A lock by name, made by ``Client.lock`` and its like."""

    async def is_locked(self) -> bool:
        """Whether anybody holds the lock now; of a semaphore, any permit. By the time of the answer that may have changed."""
        return await self._link.perform_async(self._look("is_locked"))

    async def inspect(self) -> State:
        """The holders of the lock and its waiters."""
        return State.from_json(await self._link.perform_async(self._look("inspect")))


class All(Acquirable):
    """Several mutexes as one: all or nothing, in a global order."""


class Election(Acquirable):
    """An election by name: ``acquire`` campaigns until this candidate leads, ``release`` resigns, and a leader that dies is
    followed by the next candidate in order."""

    async def leader(self) -> Leader | None:
        """The present leader; ``None`` if nobody leads."""
        return Leader.from_json(await self._link.perform_async(self._look("leader")))

    async def observe(self) -> AsyncIterator[Leader | None]:
        """Yields the leader, at once and at every change, without end."""
        seen = await self._link.perform_async(self._look("leader"))
        while True:
            yield Leader.from_json(seen)
            seen = await self._link.perform_async(self._look("observe", seen=seen))


class Job(AnyJob):
    """A job by name. Whoever asks starts the run that is due; everybody else gets nothing to do."""

    _awaited = True

    async def start(self, at: float | None = None) -> Run | Skipped:
        """Starts the run that is due. ``Skipped``, which is false, says why there is none: the last one is in progress, this
        one was run, or none is due."""
        connection = await self._link.open_async()
        granted = await _loop.submit(connection, self._begin(at))
        if not isinstance(granted, _native.Grant):
            return Skipped.from_json(granted["skipped"])
        return Run(connection, self._name, granted)

    async def inspect(self) -> JobState | None:
        """The last run, if there was one."""
        return JobState.from_json(await self._link.perform_async(self._look()))

    def __call__(
        self, function: Callable[Parameters, Coroutine[Any, Any, Result]]
    ) -> Callable[Parameters, Coroutine[Any, Any, Result | None]]:
        """Decorates a coroutine, as ``fencelock.Job`` does a function."""
        return self._decorated(function)


class Version(AnyVersion):
    """A value by name, made by ``Client.version``."""

    async def read(self) -> Snapshot | None:
        """The value and its version; ``None`` if there is none."""
        return Snapshot.from_json(await self._link.perform_async(self._ask("read_version")))

    async def compare_and_set(self, expected: int | None, value: Any) -> Swapped:
        """Writes if the version is the one expected; ``None``: if there is no value."""
        asked = self._ask("compare_and_set", expected=expected, value=value)
        return Swapped.from_json(await self._link.perform_async(asked))

    async def delete(self, expected: int) -> Swapped:
        """Deletes if the version is the one expected."""
        return Swapped.from_json(await self._link.perform_async(self._ask("delete_version", expected=expected)))

    async def update(self, change: Callable[[Any], Any]) -> Snapshot | None:
        """Replaces the value by what ``change`` makes of it, as that of ``fencelock.Version`` does. ``change`` is not awaited."""
        for tries in itertools.count(1):
            seen = await self.read()
            value = change(seen and seen.value)
            if value is None:
                return None
            swapped = await self.compare_and_set(seen and seen.version, value)
            if swapped.version is not None:
                return Snapshot(value, swapped.version)
            await self._link.perform_async(self._ask("back_off", tries=tries))


class Gate:
    """As ``fencelock.Gate``, awaited."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def set(self, key: str, token: int, value: str) -> None:
        """Sets a key to a text."""
        await self._link.perform_async(writing(key, token, {"set": value}))

    async def delete(self, key: str, token: int) -> bool:
        """Deletes a key; whether it was there."""
        return await self._link.perform_async(writing(key, token, "delete"))

    async def increment(self, key: str, token: int, by: int = 1) -> int:
        """Adds to a whole number, which is 0 if the key is not there; the sum."""
        return await self._link.perform_async(writing(key, token, {"increment": by}))


class Client(AnyClient[Lock, All, Election, Job, Version]):
    """A connection to one store, for coroutines. Made by ``connect``; awaited, it connects."""

    _lock_type, _all_type, _election_type = Lock, All, Election
    _job_type, _version_type = Job, Version

    @overload
    def locked(
        self, name: str, *, on_busy: Literal["wait"] = "wait", **options: Unpack[LockOptions]
    ) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]: ...

    @overload
    def locked(
        self, name: str, *, on_busy: Literal["skip"], **options: Unpack[LockOptions]
    ) -> Callable[
        [Callable[Parameters, Coroutine[Any, Any, Result]]], Callable[Parameters, Coroutine[Any, Any, Result | None]]
    ]: ...

    def locked(
        self, name: str, *, on_busy: Literal["wait", "skip"] = "wait", **options: Unpack[LockOptions]
    ) -> Callable[[Callable[Parameters, Any]], Callable[Parameters, Any]]:
        """Decorates a coroutine, as ``fencelock.Client.locked`` does a function."""
        return self._locked(name, on_busy, options)

    def gate(self) -> Gate:
        """Writes of keys on this client's Redis server that refuse stale tokens."""
        return Gate(self._link)

    async def names(self, prefix: str = "") -> list[str]:
        """The names of the locks the store knows that begin with ``prefix``, in order."""
        return await self._link.perform_async(json.dumps({"op": "names", "prefix": prefix}))

    async def adopt(self, text: str) -> Guard:
        """As ``fencelock.Client.adopt``."""
        connection = await self._link.open_async()
        granted = await _loop.submit(connection, adopting(text))
        return Guard(connection, granted.name, granted)

    async def break_lock(self, name: str, reason: str = "", *, token: int | None = None) -> list[Holder]:
        """As ``fencelock.Client.break_lock``."""
        return holders(await self._link.perform_async(breaking(name, reason, token)))

    async def ping(self) -> float:
        """Asks the store for nothing; the seconds that took. For health checks: it raises as any request does, within ``timeout``."""
        return await self._link.perform_async(json.dumps({"op": "ping"})) / 1000

    async def guarantees(self) -> dict[str, Any]:
        """The abilities of this store and the failures that this configuration survives, in words. Connects if need be."""
        return (await self._link.open_async()).guarantees()

    async def open(self) -> Self:
        """Connects now rather than at the first use."""
        await self._link.open_async()
        return self

    def __await__(self) -> Generator[Any, Any, Self]:
        return self.open().__await__()

    async def close(self) -> None:
        """Refuses new acquires, gives up those under way, frees what is held (guards that still live are lost from now
        on), and disconnects."""
        await self._link.close_async()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and issubclass(kind, GeneratorExit):
            # Its coroutine is being closed, where nobody can wait.
            self._link.abandon()
        else:
            await self.close()
