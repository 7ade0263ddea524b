"""The names that ``fencelock`` and ``fencelock.asyncio`` share: what is neither waited for nor awaited."""

from . import errors
from .election import Leader
from .errors import *  # noqa: F403
from .event import Event, EventKind, Observer
from .guard import Released
from .job import JobState, Skipped
from .options import (
    TABLE,
    ClientOptions,
    ElectionOptions,
    HoldOptions,
    JobOptions,
    LockOptions,
    OptionRow,
    VersionOptions,
)
from .reason import Reason
from .scope import Scope
from .state import Holder, State, Waiter
from .version import Snapshot, Swapped

__all__: list[str] = [
    "TABLE",
    "ClientOptions",
    "ElectionOptions",
    "Event",
    "EventKind",
    "HoldOptions",
    "Holder",
    "JobOptions",
    "JobState",
    "Leader",
    "LockOptions",
    "Observer",
    "OptionRow",
    "Reason",
    "Released",
    "Scope",
    "Skipped",
    "Snapshot",
    "State",
    "Swapped",
    "VersionOptions",
    "Waiter",
]
__all__ += errors.__all__
