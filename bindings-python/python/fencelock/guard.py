"""Guards: the local proof of a hold."""

import enum
import json
from datetime import timedelta
from types import TracebackType
from typing import Any

from . import _native, _waiting, errors
from ._values import milliseconds


class Released(enum.Enum):
    """How a release ended. All three are values: none of them hides the error of what was done under the lock."""

    RELEASED = "released"
    """The lock was held until now and is free, or somebody else's, from now on."""
    ALREADY_LOST = "already_lost"
    """The lock had been lost before."""
    UNCONFIRMED = "unconfirmed"
    """The store did not answer. The release is repeated until it does or the lease has ended."""


def tell(lost: errors.FencelockError, error: BaseException | None) -> None:
    """Of a block that ends: it raises the loss, unless it has an error of its own. That wins, and the loss is a note on it."""
    if error is None:
        raise lost
    error.add_note(f"the lock was lost by then: {lost}")


class Hold:
    """The common base of guards for threads and for coroutines: calls that do not wait.

    In the child of a fork a guard of the parent is inert: it is not held there, and giving it back does nothing.
    """

    __slots__ = ("__weakref__", "_connection", "_grant", "_name")

    def __init__(self, connection: _native.Connection, name: str, grant: _native.Grant) -> None:
        self._connection, self._name, self._grant = connection, name, grant
        grant.own(name)

    @property
    def name(self) -> str:
        """The lock's name; of several as one, their names joined by a comma."""
        return self._name

    @property
    def token(self) -> int:
        """The fencing token, higher than that of every grant before (readers that enter a quorum at once may share one): hand it
        to the resource with every write. Of several locks as one, that of the first in the order of the names."""
        return self._grant.token

    @property
    def tokens(self) -> dict[str, int]:
        """The token of each lock, by name."""
        return self._grant.tokens or {self._name: self.token}

    @property
    def is_held(self) -> bool:
        """Whether the lock may be relied on at this very moment. It compares the clock at every look, so it is right
        also after the process was frozen."""
        return self._grant.is_held()

    @property
    def remaining(self) -> float:
        """For how many seconds the lock may still be relied on, were it not renewed any more; 0 once it is lost."""
        return self._grant.remaining()

    def check(self) -> None:
        """Raises ``LockLostError`` unless the lock may be relied on, ``NotHeldError`` once it was given back,
        ``ClosedError`` in the child of a fork."""
        self._grant.check()

    def _why_lost(self) -> errors.FencelockError:
        try:
            self.check()
        except errors.FencelockError as error:
            return error
        return errors.lost_before_release(self._name, self.token)

    def forget(self) -> None:
        """Gives the guard back without waiting for the answer."""
        self._grant.forget()

    def _ask(self, operation: str, **facts: Any) -> _native.Request:
        return _native.Request(json.dumps({"op": operation, "guard": self._grant.guard, **facts}))

    def __repr__(self) -> str:
        state = "given back" if self._grant.is_given_back() else "held" if self.is_held else "lost"
        return f"<{type(self).__name__} {self._name!r} token={self.token} {state}>"


class Guard(Hold, _waiting.Blocking, _native.Block):
    """A guard for threads. ``with`` gives it back at the end of the block, and raises ``LockLostError`` if the lock was lost
    meanwhile; an error of the block's own wins, and the loss is a note on it.

    >>> import fencelock
    >>> with fencelock.connect("memory:guard") as client:
    ...     guard = client.lock("orders:42").acquire()
    ...     guard.is_held, guard.release()
    (True, <Released.RELEASED: 'released'>)
    """

    __slots__ = ()

    def release(self) -> Released:
        """Frees the lock and tells how that went."""
        return self._end(False)

    def extend(self, ttl: float | timedelta) -> None:
        """Pushes the end of the lease to at least now + ``ttl``, which is its length from now on. Never shortens it."""
        self._perform(self._ask("extend", ttl=milliseconds(ttl)))

    def transfer(self) -> str:
        """Lets another process go on with the hold: answers a text that ``Client.adopt`` makes the guard of, once, within the lease,
        which begins anew. From then on this guard is given back, and the lock stays held. The text is a secret: whoever has it has
        the lock. On an error the lock is freed. Raises ``UnsupportedError`` where a hold lives with its client's session (etcd,
        ZooKeeper, locks of database sessions), on a quorum, in the layout of another library, and for a lock of a scope."""
        return self._perform(self._ask("transfer"))

    def wait_lost(self) -> bool:
        """Waits for the end of the hold: true when it was lost, false when it was given back."""
        try:
            self._perform(self._ask("lost"))
        except errors.NotHeldError:
            return False
        return True

    def _perform(self, request: _native.Request) -> Any:
        _waiting.check()
        return self._connection.perform(request)

    def _end(self, succeeded: bool) -> Released:
        """Gives the guard back; a run of a job with how it went."""
        if not self._grant.is_here():
            return Released.ALREADY_LOST
        return Released(self._grant.release(succeeded))

    def _exit(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Does the work of ``__exit__``, unless a signal comes in between."""
        if self._grant.is_given_back():
            return
        released = self._end(kind is None)
        if released is Released.ALREADY_LOST and self._grant.is_here():
            tell(errors.lost_before_release(self._name, self.token), error)
