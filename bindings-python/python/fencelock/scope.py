"""Scopes: whoever holds a lock in one may enter it again."""

from typing import Generic, TypeVar, Unpack

from . import _native
from ._link import Link
from ._values import options as in_core_units
from .lock import AnyLock
from .options import LockOptions

LockT = TypeVar("LockT", bound=AnyLock)


class Scope(Generic[LockT]):
    """Where reentrancy ends: a lock held in a scope is entered again by anybody who has the scope, without a round trip,
    with the same token and deadline. It is free when every guard of it was given back. A scope is handed over on purpose; it
    is not bound to a thread or a task.

    >>> import fencelock
    >>> with fencelock.connect("memory:scope") as client:
    ...     scope = client.scope()
    ...     with scope.lock("orders:42") as outer, scope.lock("orders:42") as inner:
    ...         outer.token == inner.token
    True
    """

    def __init__(self, link: Link, lock: type[LockT]) -> None:
        self._link, self._lock = link, lock
        self._opened: tuple[_native.Connection, _native.Scope] | None = None

    def lock(self, name: str, **options: Unpack[LockOptions]) -> LockT:
        """A mutex by name that this scope may enter again. On the store it is the ordinary mutex of that name."""
        operation = {"name": name, "options": in_core_units(options)}
        return self._lock(self._link, name, operation, scope=self._number)

    def _number(self, connection: _native.Connection) -> int:
        if self._opened is None or self._opened[0] is not connection:
            self._opened = connection, connection.open_scope()
        return self._opened[1].number
