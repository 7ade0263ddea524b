"""The state of a lock, for people who look at it. Times are in seconds."""

import json
from dataclasses import dataclass
from typing import Any, Literal, Self, cast

from ._values import seconds

Mode = Literal["exclusive", "read", "write", "permit"]
"""The way of holding a lock."""


def said(info: Any) -> dict[str, Any]:
    """The information that a client gave about itself: host, pid, app, language, and the option ``info``. It comes as JSON or text."""
    told: Any = json.loads(info or "{}") if isinstance(info, str) else info
    return cast(dict[str, Any], told) if isinstance(told, dict) else {}


@dataclass(frozen=True, slots=True)
class Holder:
    """Somebody who holds a lock."""

    mode: Mode
    """How: ``exclusive``, ``read``, ``write`` or ``permit``."""
    token: int | None
    """Its fencing token; ``None`` for a holder that is not fencelock's."""
    left: float | None
    """The time left of its lease; ``None`` if it has no end."""
    held_for: float | None
    """How long it has held; ``None`` if the store does not know."""
    info: dict[str, Any]
    """The information it gave about itself: host, pid, app, language, and the option ``info``."""


    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Self:
        """From the core's answer."""
        return cls(
            mode=told["mode"],
            token=told["token"],
            left=seconds(told["left"]),
            held_for=seconds(told["held_for"]),
            info=said(told["info"]),
        )


@dataclass(frozen=True, slots=True)
class Waiter:
    """Somebody in the queue."""

    mode: Mode
    """How it wants to hold."""
    waiting_for: float
    """How long it has been in the queue."""
    info: dict[str, Any]
    """The information it gave about itself."""


@dataclass(frozen=True, slots=True)
class State:
    """A lock as it lies on the store."""

    kind: Literal["mutex", "read_write", "semaphore"]
    """The kind that it is in use as."""
    holders: tuple[Holder, ...]
    """The present holders, in the order of their tokens."""
    last: int
    """The newest token drawn."""
    waiters: tuple[Waiter, ...]
    """The queue, head first."""

    @property
    def holder(self) -> Holder | None:
        """The only holder, or the one with the lowest token."""
        return self.holders[0] if self.holders else None

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Self:
        """From the core's answer."""
        holders = map(Holder.from_json, told["holders"])
        waiters = (
            Waiter(
                mode=waiter["mode"],
                waiting_for=waiter["waiting_for"] / 1000,
                info=said(waiter["info"]),
            )
            for waiter in told["waiters"]
        )
        return cls(told["kind"], tuple(holders), told["last"], tuple(waiters))
