"""Clients: one store, its locks."""

import inspect
import json
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self, Unpack

from ._decorated import Parameters, Result, decorated, named
from ._link import Link
from ._values import milliseconds
from ._values import options as in_core_units
from .election import Election
from .event import Observer
from .job import Job
from .lock import All, Lock
from .options import ClientOptions, LockOptions, Time
from .scope import Scope
from .version import Version


def connect(
    url: str, *, on_event: Observer | None = None, **options: Unpack[ClientOptions]
) -> "Client":
    """A client of the store a URL names: ``memory:`` (this process), ``sqlite:locks.db`` (this machine),
    ``redis://host:6379`` (also ``rediss://``, ``redis+sentinel://``, ``redis+cluster://``, ``redlock://a,b,c``),
    ``etcd://a,b,c`` (also ``etcds://``), ``zookeeper://a,b,c/locks``, ``postgres://user@host/database``.

    A wrong URL or option is refused at once; the connection is made at the first use, or by ``open``, ``with`` or
    ``async with``. It is made anew in the child of a fork. Options are defaults of the client's locks.

    ``on_event`` is called with every ``Event`` of the client's locks, in their order, on a thread of the client's own, in
    the child of a fork as well. It may wait; what it raises goes to ``sys.unraisablehook``, and no lock feels either. The
    thread ends, and keeps the client no longer, when the client is closed, which gives it a second to hear the last.

    >>> import fencelock
    >>> with fencelock.connect("memory:events", on_event=lambda event: print(event.kind, event.name)) as client:
    ...     with client.lock("orders:42"):
    ...         pass
    granted orders:42
    released orders:42

    Coroutines are handed events by their loop:

    >>> import asyncio
    >>> async def watch():
    ...     loop, events = asyncio.get_running_loop(), asyncio.Queue()
    ...     tell = lambda event: loop.call_soon_threadsafe(events.put_nowait, event)
    ...     async with fencelock.connect("memory:events", on_event=tell) as client:
    ...         async with client.lock("orders:42"):
    ...             return str((await events.get()).kind)
    >>> asyncio.run(watch())
    'granted'
    """
    return Client(url, on_event=on_event, **options)


class Client:
    """A connection to one store, for threads and coroutines alike. Made by ``connect``.

    >>> import fencelock
    >>> client = fencelock.connect("memory:client", ttl=10)
    >>> with client.lock("orders:42") as guard:
    ...     client.names("orders:")
    ['orders:42']
    >>> client.close()
    """

    def __init__(
        self, url: str, *, on_event: Observer | None = None, **options: Unpack[ClientOptions]
    ) -> None:
        self._link = Link(url, in_core_units(options), on_event)

    def lock(self, name: str, **options: Unpack[LockOptions]) -> Lock:
        """A lock by name: 1 to 512 bytes of UTF-8 without control characters, not beginning with `fencelock:`. The same name is
        the same lock in every language."""
        return Lock(self._link, name, {"options": in_core_units(options)})

    def read_lock(self, name: str, **options: Unpack[LockOptions]) -> Lock:
        """The reading side of a read-write lock: any number of readers, and no writer beside them. A writer that waits
        is not passed by new readers."""
        return self._lock(name, "read", options)

    def write_lock(self, name: str, **options: Unpack[LockOptions]) -> Lock:
        """The writing side of a read-write lock: nobody beside it."""
        return self._lock(name, "write", options)

    def upgradeable(self, name: str, **options: Unpack[LockOptions]) -> Lock:
        """A reader that may become the writer (``Guard.upgrade``): one at a time, beside plain readers."""
        return self._lock(name, "upgradeable", options)

    def semaphore(self, name: str, limit: int, **options: Unpack[LockOptions]) -> Lock:
        """A semaphore: at most ``limit`` holders at once. The permit of a holder that died comes back when its lease has
        ended."""
        operation = {"mode": "permit", "permits": limit, "options": in_core_units(options)}
        return Lock(self._link, name, operation)

    def all(self, names: Iterable[str], **options: Unpack[LockOptions]) -> All:
        """Several mutexes as one: all or nothing, in a global order."""
        return All(self._link, names, in_core_units(options))

    def scope(self) -> Scope:
        """A new scope: whoever holds a lock in it may enter again."""
        return Scope(self._link)

    def reentrant(self, name: str, **options: Unpack[LockOptions]) -> Lock:
        """A mutex that may be entered again through this very object."""
        return self.scope().lock(name, **options)

    def election(self, name: str, **options: Unpack[LockOptions]) -> Election:
        """An election: one leader at a time, the next one in order."""
        return Election(self._link, name, in_core_units(options))

    def job(self, name: str, period: Time, **options: Unpack[LockOptions]) -> Job:
        """A scheduled job: at most one run in each ``period``, whoever asks for it."""
        return Job(self._link, name, milliseconds(period), in_core_units(options))

    def version(self, name: str, **options: Unpack[LockOptions]) -> Version:
        """A value by name that is replaced only if nobody was faster."""
        return Version(self._link, name, in_core_units(options))

    def locked(
        self, name: str, **options: Unpack[LockOptions]
    ) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
        """Decorates a function or a coroutine: it runs under the mutex whose name may name its arguments in braces. Where
        the name is always the same, or the lock is of another kind, ``Lock`` itself decorates.

        >>> client = connect("memory:decorated")
        >>> @client.locked("report:{day}", ttl=60)
        ... def report(day):
        ...     return client.names("report:")
        >>> report("monday")
        ['report:monday']
        """

        def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
            def lock(arguments: tuple[Any, ...], by_name: dict[str, Any]) -> Lock:
                bound = signature.bind(*arguments, **by_name)
                bound.apply_defaults()
                return self.lock(name.format(**bound.arguments), **options)

            safe = decorated(function, lock)
            signature = inspect.signature(function)
            named(name, signature)
            return safe

        return decorate

    def names(self, prefix: str = "") -> list[str]:
        """The names of the locks the store knows that begin with ``prefix``, in order."""
        return self._link.perform(json.dumps({"op": "names", "prefix": prefix}))

    async def names_async(self, prefix: str = "") -> list[str]:
        """The same, awaited."""
        return await self._link.perform_async(json.dumps({"op": "names", "prefix": prefix}))

    def ping(self) -> float:
        """Asks the store for nothing; the seconds that took. For health checks: it raises as any request does, within ``timeout``."""
        return self._link.perform(json.dumps({"op": "ping"})) / 1000

    async def ping_async(self) -> float:
        """The same, awaited."""
        return await self._link.perform_async(json.dumps({"op": "ping"})) / 1000

    def guarantees(self) -> dict[str, Any]:
        """What this store is able to do, and what this configuration survives, in words. Connects if need be."""
        return self._link.open().guarantees()

    def stats(self) -> dict[str, int]:
        """What this client carries: operations under way, guards, attempts and locks. All 0 at rest."""
        counts = self._link.here().load()
        return dict(zip(("running", "guards", "entries", "locks"), counts, strict=True))

    def open(self) -> Self:
        """Connects now rather than at the first use."""
        self._link.open()
        return self

    async def open_async(self) -> Self:
        """The same, awaited."""
        await self._link.open_async()
        return self

    def close(self) -> None:
        """Refuses new acquires, gives up those under way, frees what is held (guards that still live are lost from now
        on), and disconnects."""
        self._link.close()

    async def close_async(self) -> None:
        """The same, awaited."""
        await self._link.close_async()

    def _lock(self, name: str, mode: str, options: LockOptions) -> Lock:
        return Lock(self._link, name, {"mode": mode, "options": in_core_units(options)})

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await self.open_async()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and issubclass(kind, GeneratorExit):
            # Its coroutine is being closed, where nobody can wait.
            self._link.abandon()
        else:
            await self.close_async()
