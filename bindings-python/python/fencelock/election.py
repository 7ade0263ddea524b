"""Leader election: one leader at a time, the next one in order."""

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, Self

from . import _waiting
from ._link import Link
from .lock import Acquirable
from .state import said


@dataclass(frozen=True, slots=True)
class Leader:
    """Who leads."""

    token: int | None
    """Its fencing token; ``None`` if it is not fencelock's."""
    info: dict[str, Any]
    """What it said of itself: host, pid, app, language, label."""

    @classmethod
    def from_json(cls, told: dict[str, Any] | None) -> Self | None:
        """From the core's answer."""
        return None if told is None else cls(told["token"], said(told["info"]))


class Election(Acquirable):
    """An election by name. Its guards are leaderships: ``acquire`` campaigns until this candidate leads, giving the guard
    back resigns, and a leader that dies is followed by the next candidate in order.

    >>> import fencelock
    >>> with fencelock.connect("memory:election") as client:
    ...     with client.election("scheduler") as leadership:
    ...         client.election("scheduler").leader().token == leadership.token
    True
    """

    def __init__(self, link: Link, name: str, options: dict[str, Any]) -> None:
        super().__init__(link, name, {"name": name, "options": options})

    def _verb(self, verb: str) -> str:
        return "campaign" if verb == "acquire" else "try_campaign"

    def leader(self) -> Leader | None:
        """Who leads; ``None`` if nobody does."""
        return Leader.from_json(self._link.perform(self._look()))

    async def leader_async(self) -> Leader | None:
        """The same, awaited."""
        return Leader.from_json(await self._link.perform_async(self._look()))

    def observe(self) -> Iterator[Leader | None]:
        """Who leads, at once and at every change, without end."""
        seen = self._link.perform(self._look())
        while True:
            yield Leader.from_json(seen)
            _waiting.check("waiting for the next leader", "use `async for` with `observe_async`")
            seen = self._link.perform(self._change(seen))

    async def observe_async(self) -> AsyncIterator[Leader | None]:
        """The same, awaited."""
        seen = await self._link.perform_async(self._look())
        while True:
            yield Leader.from_json(seen)
            seen = await self._link.perform_async(self._change(seen))

    def _look(self) -> str:
        return json.dumps({"op": "leader", "name": self._name})

    def _change(self, seen: Any) -> str:
        return json.dumps({**self._operation, "op": "observe", "seen": seen})
