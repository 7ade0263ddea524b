"""Guards: the local proof of a hold."""

import asyncio
import enum
import json
import weakref
from types import TracebackType
from typing import Any, Literal, Self

from . import _loop, _native, _waiting, errors
from ._values import milliseconds
from .options import Time

Mode = Literal["upgradeable", "read"]
"""What a hold can become when it becomes less."""


class Released(enum.Enum):
    """How a release ended. All three are values: none of them hides the error of what was done under the lock."""

    RELEASED = "released"
    """The lock was held until now and is free, or somebody else's, from now on."""
    ALREADY_LOST = "already_lost"
    """The lock had been lost before."""
    UNCONFIRMED = "unconfirmed"
    """The store did not answer. The release is repeated until it does or the lease has ended."""


def _tell(lost: errors.FencelockError, error: BaseException | None) -> None:
    """Of a block that ends: it raises the loss, unless it has an error of its own. That wins, and the loss is a note on it."""
    if error is None:
        raise lost
    error.add_note(f"the lock was lost by then: {lost}")


class Hold:
    """What guards of threads and of coroutines have in common: looks that do not wait.

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
        return _native.lost_before_release()

    def forget(self) -> None:
        """Gives the guard back without waiting for the answer."""
        self._grant.forget()

    def _ask(self, operation: str, **facts: Any) -> _native.Request:
        return _native.Request(json.dumps({"op": operation, "guard": self._grant.guard, **facts}))

    def __repr__(self) -> str:
        state = "given back" if self._grant.is_given_back() else "held" if self.is_held else "lost"
        return f"<{type(self).__name__} {self._name!r} token={self.token} {state}>"


class Guard(Hold, _native.Block):
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
        if not self._grant.is_here():
            return Released.ALREADY_LOST
        return Released(self._grant.release())

    def extend(self, ttl: Time) -> None:
        """Pushes the end of the lease to at least now + ``ttl``, which is its length from now on. Never shortens it."""
        self._perform(self._ask("extend", ttl=milliseconds(ttl)))

    def upgrade(self) -> None:
        """Makes the upgradeable reader the writer: waits until the other readers have left. The guard then has a new
        token. A plain reader cannot be upgraded (``UnsupportedError``). Several at once are one, until the last is given up;
        a downgrade meanwhile overtakes them (``CancelledError``)."""
        _waiting.check("an upgrade, which waits for readers,", "use the guard of `async with`")
        self._grant.upgrade()

    def downgrade(self, mode: Mode) -> None:
        """Turns a writer into an upgradeable or plain reader, or an upgradeable reader into a plain one."""
        self._perform(self._ask("downgrade", mode=mode))

    def wait_lost(self) -> bool:
        """Waits for the end of the hold: true when it was lost, false when it was given back."""
        _waiting.check("waiting for a loss", "use the guard of `async with`")
        try:
            self._perform(self._ask("lost"))
        except errors.NotHeldError:
            return False
        return True

    def _perform(self, request: _native.Request) -> Any:
        return self._connection.perform(request)

    def _finish(self, failed: bool) -> Released:
        """What the end of a block does."""
        del failed
        return self.release()

    def _exit(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What ``__exit__`` does, unless a signal comes in between."""
        if self._grant.is_given_back():
            return
        released = self._finish(failed=kind is not None)
        if released is Released.ALREADY_LOST and self._grant.is_here():
            _tell(_native.lost_before_release(), error)


class AsyncGuard(Hold):
    """A guard for coroutines. In ``async with`` the task is cancelled when the lock is lost, and the block raises
    ``LockLostError``.

    >>> import asyncio, fencelock
    >>> async def charge():
    ...     async with fencelock.connect("memory:guard") as client:
    ...         async with client.lock("orders:42") as guard:
    ...             return guard.is_held
    >>> asyncio.run(charge())
    True
    """

    __slots__ = ("_cancelling", "_events", "_task", "_told", "_watch")

    async def release(self) -> Released:
        """Frees the lock and tells how that went. Cancelled, it frees the lock all the same."""
        if not self._grant.is_here():
            return Released.ALREADY_LOST
        loop = _loop.current()
        return Released(await loop.call(self._grant.submit_release(loop.pump)))

    async def extend(self, ttl: Time) -> None:
        """Pushes the end of the lease to at least now + ``ttl``, which is its length from now on. Never shortens it."""
        await self._perform(self._ask("extend", ttl=milliseconds(ttl)))

    async def upgrade(self) -> None:
        """Makes the upgradeable reader the writer: waits until the other readers have left. The guard then has a new
        token. A plain reader cannot be upgraded (``UnsupportedError``). Several at once are one, until the last is given up;
        a downgrade meanwhile overtakes them (``CancelledError``)."""
        loop = _loop.current()

        def unwanted(came: Any) -> None:
            # It was given up when it had just become the writer.
            if not isinstance(came, errors.FencelockError):
                upgrade = came["upgrade"]
                self._connection.submit(loop.pump, self._ask("decline_upgrade", upgrade=upgrade))

        submitted = self._connection.submit(loop.pump, self._ask("upgrade"))
        self._grant.drew((await loop.call(submitted, unwanted))["token"])

    async def downgrade(self, mode: Mode) -> None:
        """Turns a writer into an upgradeable or plain reader, or an upgradeable reader into a plain one."""
        await self._perform(self._ask("downgrade", mode=mode))

    async def wait_lost(self) -> bool:
        """Waits for the end of the hold: true when it was lost, false when it was given back."""
        try:
            await self._perform(self._ask("lost"))
        except errors.NotHeldError:
            return False
        return True

    async def _perform(self, request: _native.Request) -> Any:
        loop = _loop.current()
        return await loop.call(self._connection.submit(loop.pump, request))

    async def _finish(self, failed: bool) -> Released:
        """What the end of a block does."""
        del failed
        return await self.release()

    async def __aenter__(self) -> Self:
        self.check()
        task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"
        # The block keeps its guard. That must not keep the task: one that is forgotten with its loop is to be collected.
        self._events, self._task, self._told = _loop.current(), weakref.ref(task), False
        self._cancelling = task.cancelling()
        submitted = self._connection.submit(self._events.pump, self._ask("lost"))
        self._watch = self._events.watch(submitted, self._ended)
        return self

    def _ended(self, came: Any) -> None:
        """The hold has ended. If it was lost, the block must not go on: as ``asyncio.timeout`` does, its task is
        cancelled, and the cancellation becomes an error at the block's end."""
        if not isinstance(came, errors.FencelockError):
            self._told = True
            if (task := self._task()) is not None:
                task.cancel()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._events.forget(self._watch)
        if self._told:
            lost = self._why_lost()
            self.forget()
            task = self._task()
            ours = task is not None and task.uncancel() <= self._cancelling
            if kind is None or (ours and issubclass(kind, asyncio.CancelledError)):
                raise lost from error
            _tell(lost, error)
        elif kind is not None and issubclass(kind, GeneratorExit):
            # It is being closed, perhaps by whoever collects it, on any thread and with its loop closed: nobody can wait.
            self.forget()
        elif not self._grant.is_given_back():
            released = await self._finish(failed=kind is not None)
            if released is Released.ALREADY_LOST and self._grant.is_here():
                _tell(_native.lost_before_release(), error)
