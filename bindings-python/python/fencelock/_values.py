"""Values on their way to the core: seconds become the milliseconds it counts in."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from .options import TABLE

_MOST = 1e300
"""More seconds than this, or what cannot be compared with them, are no number in the core."""

_TIMES = {row["name"] for row in TABLE if row["kind"] in ("duration", "optional_duration")}


def milliseconds(value: Any) -> Any:
    """A time in the core's unit. What is no time is passed on, to be refused there by its name."""
    if isinstance(value, timedelta):
        return value.total_seconds() * 1000
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value * 1000 if abs(value) < _MOST else str(value)
    return value


def options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options as the core takes them."""
    return {
        name: milliseconds(value) if name in _TIMES else value for name, value in given.items()
    }


def seconds(value: float | None) -> float | None:
    """A time of the core's in seconds."""
    return None if value is None else value / 1000
