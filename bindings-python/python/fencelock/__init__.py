"""Distributed locks that tell the truth: a fencing token on every grant, guards that know their deadline, nothing left behind.

    >>> import fencelock
    >>> with fencelock.connect("memory:") as client:  # or redis://127.0.0.1, or sqlite:locks.db
    ...     with client.lock("orders:42", ttl=30, wait=5) as guard:
    ...         print("charging with a fencing token:", guard.token > 0)
    charging with a fencing token: True

The same objects serve coroutines: ``async with client.lock("orders:42") as guard``. Times are seconds, as floats or
``datetime.timedelta``.
"""

from .client import Client, connect
from .election import Election, Leader
from .errors import (
    AuthenticationError,
    CancelledError,
    ClosedError,
    ConflictError,
    FencelockError,
    ForgottenGuardWarning,
    InternalError,
    InvalidArgumentError,
    LockLostError,
    LockTimeoutError,
    NotHeldError,
    UnavailableError,
    UnsupportedError,
)
from .event import Event, EventKind, Observer
from .guard import AsyncGuard, Guard, Released
from .job import AsyncRun, Job, JobState, Run, Skipped
from .lock import All, Lock
from .options import TABLE, ClientOptions, LockOptions, OptionRow
from .scope import Scope
from .state import Holder, State, Waiter
from .version import Snapshot, Swapped, Version
from .why import Why

__all__ = [
    "TABLE",
    "All",
    "AsyncGuard",
    "AsyncRun",
    "AuthenticationError",
    "CancelledError",
    "Client",
    "ClientOptions",
    "ClosedError",
    "ConflictError",
    "Election",
    "Event",
    "EventKind",
    "FencelockError",
    "ForgottenGuardWarning",
    "Guard",
    "Holder",
    "InternalError",
    "InvalidArgumentError",
    "Job",
    "JobState",
    "Leader",
    "Lock",
    "LockLostError",
    "LockOptions",
    "LockTimeoutError",
    "NotHeldError",
    "Observer",
    "OptionRow",
    "Released",
    "Run",
    "Scope",
    "Skipped",
    "Snapshot",
    "State",
    "Swapped",
    "UnavailableError",
    "UnsupportedError",
    "Version",
    "Waiter",
    "Why",
    "connect",
]
