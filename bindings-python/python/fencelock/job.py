"""Scheduled jobs: at most one run in each period, whoever asks for it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Self, cast

from . import _loop, _native
from ._decorated import Parameters, Result, decorated
from ._link import Link
from .guard import Guard, Released
from .reason import Reason
from .state import said


@dataclass(frozen=True, slots=True)
class JobState:
    """The last run of a job. Instants are seconds since 1970."""

    status: Literal["succeeded", "failed", "in_progress"]
    """``succeeded``, ``failed``, or ``in_progress``, also if it died."""
    dead: bool
    """Whether it is in progress no more, though it never said so."""
    instant: float
    """The instant it was scheduled for."""
    token: int
    """Its fencing token."""
    started: float
    """When it began, by the store's clock."""
    seen: float
    """When it was last seen alive, or ended."""
    info: dict[str, Any]
    """The information it gave about itself."""

    @classmethod
    def from_json(cls, told: dict[str, Any] | None) -> Self | None:
        """From the core's answer."""
        if told is None:
            return None
        times = {name: told[name] / 1000 for name in ("instant", "started", "seen")}
        return cls(
            status=told["status"], dead=told["dead"], token=told["token"], info=said(told["info"]), **times
        )


@dataclass(frozen=True, slots=True)
class Skipped:
    """The answer of a start that started no run. It is false, as a run is true."""

    reason: Reason
    """The reason."""
    next: float | None
    """The earliest time at which it is worth asking again, in seconds since 1970 by the store's clock. While a run is in
    progress: when that run counts as dead, if it is not renewed. ``None`` if only the scheduler knows the next instant."""
    last: JobState
    """The last run, with its holder in ``info``."""

    def __bool__(self) -> Literal[False]:
        return False

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Self:
        """From the core's answer."""
        due, last = told["next"], JobState.from_json(told["last"])
        assert last is not None, "nothing but a run is in the way of a run"
        return cls(Reason(told["reason"]), None if due is None else due / 1000, last)


class Run(Guard):
    """A run of a job, for threads: a guard that ends with how it went. ``with`` says that at the end of the block: failed if the block
    raised. A ``release`` is a failure too."""

    __slots__ = ()

    def __bool__(self) -> Literal[True]:
        return True

    @property
    def instant(self) -> float:
        """The instant it is scheduled for, in seconds since 1970."""
        return self._grant.instant

    def succeed(self) -> Released:
        """It has succeeded: this instant is not run again."""
        return self._end(True)

    def fail(self) -> Released:
        """It has failed: this instant is not run again, and the failure can be seen."""
        return self._end(False)


class AnyJob:
    """A job by name."""

    _awaited = False

    def __init__(self, link: Link, name: str, times: dict[str, Any], options: dict[str, Any]) -> None:
        self._link, self._name, self._times, self._options = link, name, times, options

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    def _begin(self, at: float | None) -> _native.Request:
        instant = None if at is None else at * 1000
        asked = {"op": "start_job", "name": self._name, **self._times, "at": instant}
        return _native.Request(json.dumps({**asked, "options": self._options}))

    def _look(self) -> str:
        return json.dumps({"op": "inspect_job", "name": self._name})

    def _decorated(self, function: Callable[Parameters, Any]) -> Callable[Parameters, Any]:
        return decorated(function, lambda arguments, named: cast(Any, self).start(), self._awaited)


class Job(AnyJob):
    """A job by name. Whoever asks starts the run that is due; everybody else gets nothing to do.

    >>> import fencelock
    >>> with fencelock.connect("memory:job") as client:
    ...     nightly = client.job("report", period=86_400)
    ...     for node in "one", "another":
    ...         if run := nightly.start():
    ...             with run:
    ...                 print(node, "runs with token", run.token > 0)
    ...         else:
    ...             print(node, "has nothing to do:", run.reason)
    one runs with token True
    another has nothing to do: done
    """

    def start(self, at: float | None = None) -> Run | Skipped:
        """Starts the run that is due. ``Skipped``, which is false, says why there is none: the last one is in progress, this
        one was run, or none is due. A run is named by its scheduled instant: the last multiple of the period, or time of the
        cron expression, by the store's clock, or ``at`` (seconds since 1970), the scheduler's own, which may lie ahead of that
        clock by half a period, or a minute."""
        connection = self._link.open()
        granted = connection.perform(self._begin(at))
        try:
            if not isinstance(granted, _native.Grant):
                return Skipped.from_json(granted["skipped"])
            return Run(connection, self._name, granted)
        except BaseException:
            # Of a signal between two steps. What it interrupted is kept by its traceback.
            _loop.take_back(granted)
            raise

    def inspect(self) -> JobState | None:
        """The last run, if there was one."""
        return JobState.from_json(self._link.perform(self._look()))

    def __call__(self, function: Callable[Parameters, Result]) -> Callable[Parameters, Result | None]:
        """Decorates a function: a call is the run that is due, which has failed if the function raises; it does nothing and answers
        ``None`` where none is due.

        >>> import fencelock
        >>> client = fencelock.connect("memory:decorated-job")
        >>> @client.job("report", period=86_400)
        ... def report():
        ...     return "reported"
        >>> report(), report()
        ('reported', None)
        """
        return self._decorated(function)
