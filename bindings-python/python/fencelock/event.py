"""The events of locks, for logs, metrics and observers."""

import _thread
import enum
import inspect
import itertools
import logging
import os
import threading
import time
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

from . import _native, errors


class EventKind(enum.StrEnum):
    """A kind of event that may happen to a lock of a client. The members are strings, too."""

    WAITING = "waiting"
    """An acquire has to wait: in the line of this client or in the queue on the store. Told once."""
    LONG_WAIT = "long_wait"
    """An acquire has waited for 30 s. Told once."""
    TROUBLE = "trouble"
    """The store refuses an acquire that waits, or does not answer it; it goes on asking. Told when that begins, and when
    the reason has changed."""
    GRANTED = "granted"
    """A lock was granted."""
    RENEWED = "renewed"
    """The lease was renewed."""
    LATE_RENEWAL = "late_renewal"
    """The lease was renewed when it had nearly ended: the store or this process is slow."""
    RELEASED = "released"
    """A guard was given back."""
    LOST = "lost"
    """A hold was lost before it was given back."""
    BROKEN = "broken"
    """This client has broken a hold of another one (``Client.break_lock``)."""
    SKIPPED = "skipped"
    """A job was asked for a run, and there is none to start. The token is the last run's."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a lock of a client; see ``on_event`` of ``connect``."""

    kind: EventKind
    """The kind of event that happened."""
    name: str
    """The lock."""
    token: int | None
    """The token of the hold it happened to; ``None`` while there is none."""
    reason: str | None = None
    """The cause, for trouble, losses, broken holds, late renewals and runs that are skipped."""
    at: float = field(default=0.0, compare=False)
    """The time, in seconds since 1970."""
    attempt: int | None = field(default=None, compare=False)
    """The number of the acquire in this client, while it waits and with its grant."""
    waited: float | None = field(default=None, compare=False)
    """Seconds that an acquire has waited, for ``EventKind.GRANTED`` and ``EventKind.LONG_WAIT``."""
    held: float | None = field(default=None, compare=False)
    """Seconds that a guard had the lock, for ``EventKind.RELEASED`` and ``EventKind.LOST``."""
    holder: str | None = None
    """The holder, for ``EventKind.LONG_WAIT``, if the store says."""
    warning: bool = field(default=False, compare=False)
    """Whether the log has it as a warning."""
    text: str = field(default="", compare=False, repr=False)
    """The line in the log, which ``str`` answers too."""

    def __str__(self) -> str:
        return self.text

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Self:
        """From the core's answer."""
        for time in ("at", "waited", "held"):
            told[time] = told[time] and told[time] / 1000
        told["kind"] = EventKind(told["kind"])
        return cls(**told)


Observer = Callable[[Event], object]
"""A function that is called with every event of a client."""

_LOGGER = logging.getLogger("fencelock")


def logs_all() -> bool:
    """Whether the log wants events that are no warnings."""
    return _LOGGER.isEnabledFor(logging.DEBUG)


def has_threads() -> bool:
    """Whether a thread is one. Where gevent or eventlet make it a greenlet, one that waits for events would keep the hub from its end."""
    return isinstance(_thread.start_new_thread, types.BuiltinFunctionType)


def log(event: Event) -> None:
    """Writes an event to the log."""
    _LOGGER.log(logging.WARNING if event.warning else logging.DEBUG, "%s", event)


def check(observer: Any) -> None:
    """Refuses what cannot be called with an event."""
    awaited = map(inspect.iscoroutinefunction, (observer, getattr(observer, "__call__", None)))
    if not callable(observer) or any(awaited):
        message = "`on_event` is a function that takes an event; for coroutines, let it hand the event to their loop"
        raise errors.InvalidArgumentError(message, fields={"argument": "on_event"})


class Telling:
    """The thread that tells the log and an observer what happens to the locks of one client, one after the other.

    It belongs to Python: no thread of the core takes the interpreter's lock, and nothing that an observer does, raises or
    waits for is felt by a lock.
    """

    def __init__(self, feed: _native.Feed, observer: Observer | None) -> None:
        self._feed, self._observers = feed, [log] if observer is None else [log, observer]
        # Python's own, so it can be joined: a thread that comes back from native code after the end is killed in its work.
        self._thread = threading.Thread(target=self._tell, name="fencelock-events", daemon=True)
        _tellings.add(self)
        try:
            self._thread.start()
        except RuntimeError as error:
            # The system or an interpreter that exits gives no thread. The locks work all the same.
            self._leave()
            _native.unraisable(error, self._observers[-1])

    def end(self) -> threading.Thread | None:
        """Nothing more is told than what has happened until now. Answers the thread that still tells that, if it is
        another than this one."""
        self._feed.end()
        mine = self._thread is threading.current_thread()
        return None if mine or not self._thread.is_alive() else self._thread

    def _leave(self) -> None:
        self._feed.end()
        _tellings.discard(self)

    def _tell(self) -> None:
        while events := self._news():
            for event, observer in itertools.product(events, self._observers):
                try:
                    observer(event)
                except BaseException as error:
                    _native.unraisable(error, observer)
        self._leave()

    def _news(self) -> list[Event]:
        try:
            return [Event.from_json(event) for event in self._feed.news()]
        except errors.FencelockError:
            return []


_tellings: set[Telling] = set()


def part(end: float) -> None:
    """Before the interpreter ends, until then at most: no thread may wait in native code when it does."""
    threads = [telling.end() for telling in list(_tellings)]
    for thread in filter(None, threads):
        thread.join(max(0.0, end - time.monotonic()))


# Threads do not follow into the child of a fork. Windows has no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_tellings.clear)
