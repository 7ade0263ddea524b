"""The errors of fencelock: one class for each code, all of them a ``FencelockError``."""

from typing import ClassVar

__all__ = [
    "AuthenticationError",
    "CancelledError",
    "ClosedError",
    "ConflictError",
    "FencelockError",
    "ForgottenGuardWarning",
    "InternalError",
    "InvalidArgumentError",
    "LockLostError",
    "LockTimeoutError",
    "NotHeldError",
    "UnavailableError",
    "UnsupportedError",
]


class FencelockError(Exception):
    """Any error of fencelock. Match on the class or on ``code``; show the message to people.

    >>> import fencelock
    >>> try:
    ...     fencelock.connect("memory:", tll=5)
    ... except fencelock.FencelockError as error:
    ...     print(error.code, error.fields["nearest"])
    invalid ttl
    """

    code: ClassVar[str] = "internal"
    """The stable kind of the error, the same in every language."""

    message: str
    """The error and the remedy in words, with the facts."""

    retryable: bool
    """Whether the same call may succeed later."""

    fields: dict[str, str]
    """The facts, by name."""

    def __init__(
        self, message: str, retryable: bool = False, fields: dict[str, str] | None = None
    ) -> None:
        super().__init__(message, retryable, fields)
        self.message, self.retryable, self.fields = message, retryable, fields or {}

    def __str__(self) -> str:
        return self.message


class LockTimeoutError(FencelockError, TimeoutError):
    """The wait ended before the lock was granted. Nothing is held."""

    code = "timeout"


class LockLostError(FencelockError):
    """The lock was held and is not any more, or can no longer be proved to be."""

    code = "lost"


class NotHeldError(FencelockError):
    """The guard was given back before, so there is nothing to act on."""

    code = "not_held"


class InvalidArgumentError(FencelockError, ValueError):
    """A name, option or URL is not acceptable; the message names it."""

    code = "invalid"


class UnsupportedError(FencelockError):
    """This store or dialect cannot do what was asked."""

    code = "unsupported"


class UnavailableError(FencelockError, ConnectionError):
    """The store could not be reached or could not answer; nothing is held."""

    code = "unavailable"


class AuthenticationError(FencelockError):
    """The store refused the credentials or the user's rights."""

    code = "auth"


class ConflictError(FencelockError):
    """The data on the store under this name is not such a lock, or somebody else changed the value meanwhile."""

    code = "conflict"


class CancelledError(FencelockError):
    """The caller gave the operation up, or a later request replaced it."""

    code = "cancelled"


class ClosedError(FencelockError):
    """The client was closed."""

    code = "closed"


class InternalError(FencelockError):
    """A defect of fencelock itself."""

    code = "internal"


class ForgottenGuardWarning(RuntimeWarning):
    """A guard was thrown away while it was held: from then on its lock protects nothing. Shown once for each place in the
    program, unless filters say otherwise."""

    name: str
    """The lock's name. It is not part of the text, which would be another one for every name."""

    def __init__(self, name: str) -> None:
        message = (
            "a guard was forgotten, and its lock is released now: write `with lock:` around what it protects, or keep the guard "
            "that `acquire` returns and call its `release`"
        )
        super().__init__(message)
        self.name = name


_CLASSES: dict[str, type[FencelockError]] = {
    kind.code: kind
    for kind in (
        LockTimeoutError,
        LockLostError,
        NotHeldError,
        InvalidArgumentError,
        UnsupportedError,
        UnavailableError,
        AuthenticationError,
        ConflictError,
        CancelledError,
        ClosedError,
        InternalError,
    )
}


def lost_before_release(name: str, token: int) -> LockLostError:
    """The exception of a block whose lock was found lost at its end."""
    message = f"the lock was lost before its release; what was done last was not protected (name: {name}, token: {token})"
    return LockLostError(message, fields={"name": name, "token": str(token)})


def of_core(code: str, message: str, retryable: bool, fields: dict[str, str]) -> FencelockError:
    """The exception for an error of the core."""
    return _CLASSES.get(code, InternalError)(message, retryable, fields)
