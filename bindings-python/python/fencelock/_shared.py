"""The names that ``fencelock`` and ``fencelock.asyncio`` share: what is neither waited for nor awaited."""

from .election import Leader
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
    WaitOptions,
)
from .reason import Reason
from .scope import Scope
from .state import Holder, State, Waiter
from .version import Snapshot, Swapped

# Every name, as mypy does not follow the list of one module into the next.
__all__: list[str] = [
    "TABLE",
    "AuthenticationError",
    "CancelledError",
    "ClientOptions",
    "ClosedError",
    "ConflictError",
    "ElectionOptions",
    "Event",
    "EventKind",
    "FencelockError",
    "ForgottenGuardWarning",
    "HoldOptions",
    "Holder",
    "InternalError",
    "InvalidArgumentError",
    "JobOptions",
    "JobState",
    "Leader",
    "LockLostError",
    "LockOptions",
    "LockTimeoutError",
    "NotHeldError",
    "Observer",
    "OptionRow",
    "Reason",
    "Released",
    "Scope",
    "Skipped",
    "Snapshot",
    "State",
    "Swapped",
    "UnavailableError",
    "UnsupportedError",
    "VersionOptions",
    "WaitOptions",
    "Waiter",
]
