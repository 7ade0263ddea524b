"""Distributed locks that tell the truth: a fencing token on every grant, guards that know their deadline, nothing left behind.

    >>> import fencelock
    >>> with fencelock.connect("memory:") as client:  # or redis://127.0.0.1, or sqlite:locks.db
    ...     with client.lock("orders:42", ttl=30, wait=5) as guard:
    ...         print("charging with a fencing token:", guard.token > 0)
    charging with a fencing token: True

``fencelock.asyncio`` has the same for coroutines. Times are seconds, as floats or
``datetime.timedelta``.
"""

from . import _shared
from ._shared import *  # noqa: F403
from .client import Client, connect
from .election import Election
from .gate import Gate
from .guard import Guard
from .job import Job, Run
from .lock import All, Lock
from .version import Version

__all__ = ["All", "Client", "Election", "Gate", "Guard", "Job", "Lock", "Run", "Version", "connect"]
__all__ += _shared.__all__
