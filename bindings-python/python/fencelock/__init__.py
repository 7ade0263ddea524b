"""Distributed locks that tell the truth: a fencing token on every grant, guards that know their deadline, nothing left behind.

    >>> import fencelock
    >>> with fencelock.connect("memory:") as client:  # or redis://127.0.0.1, or sqlite:locks.db
    ...     with client.lock("orders:42", ttl=30, wait=5) as guard:
    ...         print("charging with a fencing token:", guard.token > 0)
    charging with a fencing token: True

``fencelock.asyncio`` has the same for coroutines. Times are seconds, as floats or
``datetime.timedelta``.
"""

from . import errors
from .client import Client, connect
from .election import Election, Leader
from .errors import *  # noqa: F403
from .event import Event, EventKind, Observer
from .guard import Guard, Released
from .job import Job, JobState, Run, Skipped
from .lock import All, Lock
from .options import TABLE, ClientOptions, LockOptions, OptionRow
from .reason import Reason
from .scope import Scope
from .state import Holder, State, Waiter
from .version import Snapshot, Swapped, Version

__all__ = [
    "TABLE",
    "All",
    "Client",
    "ClientOptions",
    "Election",
    "Event",
    "EventKind",
    "Guard",
    "Holder",
    "Job",
    "JobState",
    "Leader",
    "Lock",
    "LockOptions",
    "Observer",
    "OptionRow",
    "Reason",
    "Released",
    "Run",
    "Scope",
    "Skipped",
    "Snapshot",
    "State",
    "Swapped",
    "Version",
    "Waiter",
    "connect",
]
__all__ += errors.__all__
