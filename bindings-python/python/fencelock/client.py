"""Clients: one store, its locks."""

import inspect
import json
from collections.abc import Callable, Iterable
from datetime import timedelta
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar, Unpack, overload

from . import _loop, _native, errors
from ._decorated import Parameters, Result, decorated, named
from ._link import Link
from ._values import milliseconds
from ._values import options as in_core_units
from ._waiting import Blocking
from .election import Election
from .event import Observer
from .gate import Gate
from .guard import Guard
from .job import AnyJob, Job
from .lock import All, AnyLock, Lock
from .options import ClientOptions, ElectionOptions, JobOptions, LockOptions, VersionOptions
from .scope import Scope
from .state import Holder
from .version import AnyVersion, Version


def connect(
    url: str, *, on_event: Observer | None = None, **options: Unpack[ClientOptions]
) -> "Client":
    """A client of the store a URL names: ``memory:`` (this process), ``sqlite:locks.db`` (this machine),
    ``redis://host:6379`` (also ``rediss://``, ``redis+sentinel://``, ``redis+cluster://``, ``redlock://a,b,c``),
    ``etcd://a,b,c`` (also ``etcds://``), ``zookeeper://a,b,c/locks``, ``postgres://user@host/database``.

    A wrong URL or option is refused at once; the connection is made at the first use, or by ``open`` or ``with``.
    It is made anew in the child of a fork. Options are defaults of the client's locks.

    ``on_event`` is called with every ``Event`` of the client's locks, in their order, on a thread of the client's own, in
    the child of a fork as well. It may wait; what it raises goes to ``sys.unraisablehook``, and no lock feels either. The
    thread ends, and keeps the client no longer, when the client is closed, which gives it a second to hear the last.

    >>> import fencelock
    >>> with fencelock.connect("memory:events", on_event=lambda event: print(event.kind, event.name)) as client:
    ...     with client.lock("orders:42"):
    ...         pass
    granted orders:42
    released orders:42
    """
    return Client(url, on_event=on_event, **options)


LockT = TypeVar("LockT", bound=AnyLock)
AllT = TypeVar("AllT", bound=AnyLock)
ElectionT = TypeVar("ElectionT", bound=AnyLock)
JobT = TypeVar("JobT", bound=AnyJob)
VersionT = TypeVar("VersionT", bound=AnyVersion)


class AnyClient(Generic[LockT, AllT, ElectionT, JobT, VersionT]):
    """The nouns of a store by name: of threads, or of coroutines."""

    _lock_type: type[LockT]
    _all_type: type[AllT]
    _election_type: type[ElectionT]
    _job_type: type[JobT]
    _version_type: type[VersionT]

    def __init__(
        self, url: str, *, on_event: Observer | None = None, **options: Unpack[ClientOptions]
    ) -> None:
        self._link = Link(url, in_core_units(options), on_event)

    def lock(self, name: str, **options: Unpack[LockOptions]) -> LockT:
        """A lock by name: 1 to 512 bytes of UTF-8 without control characters, not beginning with `fencelock:`. The same name is
        the same lock in every language."""
        return self._lock(name, options)

    def read_lock(self, name: str, **options: Unpack[LockOptions]) -> LockT:
        """The reading side of a read-write lock: any number of readers, and no writer beside them. A writer that waits
        is not passed by new readers."""
        return self._lock(name, options, mode="read")

    def write_lock(self, name: str, **options: Unpack[LockOptions]) -> LockT:
        """The writing side of a read-write lock: nobody beside it."""
        return self._lock(name, options, mode="write")

    def semaphore(self, name: str, limit: int, **options: Unpack[LockOptions]) -> LockT:
        """A semaphore: at most ``limit`` holders at once. The permit of a holder that died comes back when its lease has
        ended."""
        return self._lock(name, options, mode="permit", permits=limit)

    def all(self, names: Iterable[str], **options: Unpack[LockOptions]) -> AllT:
        """Several mutexes as one: all or nothing, in a global order."""
        if isinstance(names, str):
            message = f"these are names: give a list of them, such as [{names!r}]"
            raise errors.InvalidArgumentError(message, fields={"argument": "names"})
        listed = list(names)
        operation = {"names": listed, "options": in_core_units(options)}
        return self._all_type(self._link, ", ".join(map(str, listed)), operation, ("acquire_all", "try_acquire_all"))

    def scope(self) -> Scope[LockT]:
        """A new scope: whoever holds a lock in it may enter again."""
        return Scope(self._link, self._lock_type)

    def reentrant(self, name: str, **options: Unpack[LockOptions]) -> LockT:
        """A mutex that may be entered again through this very object."""
        return self.scope().lock(name, **options)

    def election(self, name: str, **options: Unpack[ElectionOptions]) -> ElectionT:
        """An election: one leader at a time, the next one in order."""
        operation = {"name": name, "options": in_core_units(options)}
        return self._election_type(self._link, name, operation, ("campaign", "try_campaign"))

    def job(
        self,
        name: str,
        period: float | timedelta | None = None,
        *,
        cron: str | None = None,
        timezone: str | None = None,
        **options: Unpack[JobOptions],
    ) -> JobT:
        """A scheduled job: at most one run in each ``period``, or for each time of the expression ``cron`` (``"0 3 * * *"``) in
        ``timezone`` (``"Europe/Berlin"``; UTC by default), whoever asks for it."""
        times = {"period": None if period is None else milliseconds(period), "cron": cron, "timezone": timezone}
        return self._job_type(self._link, name, times, in_core_units(options))

    def version(self, name: str, **options: Unpack[VersionOptions]) -> VersionT:
        """A value by name that is replaced only if nobody was faster."""
        return self._version_type(self._link, name, in_core_units(options))

    def _locked(
        self, name: str, on_busy: str, options: LockOptions
    ) -> Callable[[Callable[Parameters, Any]], Callable[Parameters, Any]]:
        if on_busy not in ("wait", "skip"):
            raise errors.InvalidArgumentError("`on_busy` is `wait` or `skip`", fields={"argument": "on_busy"})

        def decorate(function: Callable[Parameters, Any]) -> Callable[Parameters, Any]:
            def begin(arguments: tuple[Any, ...], by_name: dict[str, Any]) -> Any:
                bound = signature.bind(*arguments, **by_name)
                bound.apply_defaults()
                lock: Any = self.lock(name.format(**bound.arguments), **options)
                return lock.try_acquire() if on_busy == "skip" else lock

            safe = decorated(function, begin, self._lock_type._awaited)
            signature = inspect.signature(function)
            named(name, signature)
            return safe

        return decorate

    def stats(self) -> dict[str, int]:
        """The numbers of operations under way, guards, attempts and locks that this client carries; all 0 at rest."""
        counts = self._link.here().load()
        return dict(zip(("running", "guards", "entries", "locks"), counts, strict=True))

    def _lock(self, name: str, options: LockOptions, **form: Any) -> LockT:
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            message = f"`name` is a text, not {name!r}; a lock decorates as `@client.lock(\"name\")`"
            raise errors.InvalidArgumentError(message, fields={"argument": "name"})
        return self._lock_type(self._link, name, {"name": name, **form, "options": in_core_units(options)})


class Client(AnyClient[Lock, All, Election, Job, Version], Blocking):
    """A connection to one store, for threads; see ``fencelock.asyncio`` for coroutines. Made by ``connect``.

    >>> import fencelock
    >>> client = fencelock.connect("memory:client", ttl=10)
    >>> with client.lock("orders:42") as guard:
    ...     client.names("orders:")
    ['orders:42']
    >>> client.close()
    """

    _lock_type, _all_type, _election_type = Lock, All, Election
    _job_type, _version_type = Job, Version

    @overload
    def locked(
        self, name: str, *, on_busy: Literal["wait"] = "wait", **options: Unpack[LockOptions]
    ) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]: ...

    @overload
    def locked(
        self, name: str, *, on_busy: Literal["skip"], **options: Unpack[LockOptions]
    ) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result | None]]: ...

    def locked(
        self, name: str, *, on_busy: Literal["wait", "skip"] = "wait", **options: Unpack[LockOptions]
    ) -> Callable[[Callable[Parameters, Any]], Callable[Parameters, Any]]:
        """Decorates a function: it runs under the mutex whose name may name its arguments in braces. Where the name is always
        the same, or the lock is of another kind, ``Lock`` itself decorates. With ``on_busy="skip"`` a call while somebody
        else has the lock does nothing and answers ``None``.

        >>> client = connect("memory:decorated")
        >>> @client.locked("report:{day}", ttl=60)
        ... def report(day):
        ...     return client.names("report:")
        >>> report("monday")
        ['report:monday']
        """
        return self._locked(name, on_busy, options)

    def gate(self) -> Gate:
        """Writes of keys on this client's Redis server that refuse stale tokens."""
        return Gate(self._link)

    def names(self, prefix: str = "") -> list[str]:
        """The names of the locks the store knows that begin with ``prefix``, in order."""
        return self._link.perform(json.dumps({"op": "names", "prefix": prefix}))

    def adopt(self, text: str) -> Guard:
        """The guard of a hold that another process has let go of by ``Guard.transfer``, with its token. Raises ``NotHeldError`` if
        the text was used before, is too old or of another store, ``InvalidArgumentError`` if it is no such text."""
        connection = self._link.open()
        granted = connection.perform(adopting(text))
        try:
            return Guard(connection, granted.name, granted)
        except BaseException:
            _loop.take_back(granted)
            raise

    def break_lock(self, name: str, reason: str = "", *, token: int | None = None) -> list[Holder]:
        """Ends every hold of a lock, a read-write lock or a semaphore, or only those with this token; for holders that hang.
        The holds that it ended. The next waiter is granted, with a greater token. A holder finds the loss with its next renewal,
        after a third of its lease at the latest; the fence refuses what it writes meanwhile. ``reason`` goes into the event
        and the log. Raises ``NotHeldError`` if nobody holds it, ``UnsupportedError`` if another library or a session of a database
        server does, with nothing changed."""
        return holders(self._link.perform(breaking(name, reason, token)))

    def ping(self) -> float:
        """Asks the store for nothing; the seconds that took. For health checks: it raises as any request does, within ``timeout``."""
        return self._link.perform(json.dumps({"op": "ping"})) / 1000

    def guarantees(self) -> dict[str, Any]:
        """The abilities of this store and the failures that this configuration survives, in words. Connects if need be."""
        return self._link.open().guarantees()

    def open(self) -> Self:
        """Connects now rather than at the first use."""
        self._link.open()
        return self

    def close(self) -> None:
        """Refuses new acquires, gives up those under way, frees what is held (guards that still live are lost from now
        on), and disconnects."""
        self._link.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def adopting(text: str) -> _native.Request:
    """Asks the core to go on with a hold."""
    return _native.Request(json.dumps({"op": "adopt", "text": text}))


def breaking(name: str, reason: str, token: int | None) -> str:
    """Asks the core to break a lock."""
    return json.dumps({"op": "break_lock", "name": name, "reason": reason, "token": token})


def holders(broken: list[dict[str, Any]]) -> list[Holder]:
    """From the core's answer."""
    return [Holder.from_json(holder) for holder in broken]
