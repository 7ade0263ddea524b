"""Leader election: one leader at a time, the next one in order."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from .lock import Acquirable
from .state import said


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader of an election."""

    token: int | None
    """Its fencing token; ``None`` if it is not fencelock's."""
    info: dict[str, Any]
    """The information it gave about itself: host, pid, app, language, and the option ``info``."""

    @classmethod
    def from_json(cls, told: dict[str, Any] | None) -> Self | None:
        """From the core's answer."""
        return None if told is None else cls(told["token"], said(told["info"]))


class Election(Acquirable):
    """An election by name: ``acquire`` campaigns until this candidate leads, ``release`` resigns, and a leader that dies is
    followed by the next candidate in order.

    >>> import fencelock
    >>> with fencelock.connect("memory:election") as client:
    ...     with client.election("scheduler") as guard:
    ...         client.election("scheduler").leader().token == guard.token
    True
    """

    def leader(self) -> Leader | None:
        """The present leader; ``None`` if nobody leads."""
        return Leader.from_json(self._link.perform(self._look("leader")))

    def observe(self) -> Iterator[Leader | None]:
        """Yields the leader, at once and at every change, without end."""
        seen = self._link.perform(self._look("leader"))
        while True:
            yield Leader.from_json(seen)
            seen = self._link.perform(self._look("observe", seen=seen))
