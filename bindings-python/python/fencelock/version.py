"""Values with versions: replaced only if nobody was faster."""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from ._link import Link


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A value and its version."""

    value: Any
    """The value: whatever JSON can say."""
    version: int
    """Its version; another one after every change."""

    @classmethod
    def from_json(cls, told: dict[str, Any] | None) -> Self | None:
        """From the core's answer."""
        return None if told is None else cls(told["value"], told["version"])


@dataclass(frozen=True, slots=True)
class Swapped:
    """How a compare-and-set ended."""

    done: bool
    """Whether the value was written."""
    version: int | None
    """Its new version, if it was written."""
    there: Snapshot | None
    """The value that is there instead, if it was not written; ``None`` if there is none."""

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Self:
        """From the core's answer."""
        if "done" in told:
            return cls(True, told["done"], None)
        return cls(False, None, Snapshot.from_json(told["changed"]))


class AnyVersion:
    """A value by name."""

    def __init__(self, link: Link, name: str, options: dict[str, Any]) -> None:
        self._link, self._name, self._options = link, name, options

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    def _ask(self, operation: str, **facts: Any) -> str:
        return json.dumps({"op": operation, "name": self._name, "options": self._options, **facts})


class Version(AnyVersion):
    """A value by name, made by ``Client.version``.

    >>> import fencelock
    >>> with fencelock.connect("memory:version") as client:
    ...     balance = client.version("balance:42")
    ...     balance.update(lambda seen: (seen or 0) + 10).value
    10
    """

    def read(self) -> Snapshot | None:
        """The value and its version; ``None`` if there is none."""
        return Snapshot.from_json(self._link.perform(self._ask("read_version")))

    def compare_and_set(self, expected: int | None, value: Any) -> Swapped:
        """Writes if the version is the one expected; ``None``: if there is no value."""
        asked = self._ask("compare_and_set", expected=expected, value=value)
        return Swapped.from_json(self._link.perform(asked))

    def delete(self, expected: int) -> Swapped:
        """Deletes if the version is the one expected."""
        return Swapped.from_json(self._link.perform(self._ask("delete_version", expected=expected)))

    def update(self, change: Callable[[Any], Any]) -> Snapshot | None:
        """Replaces the value by what ``change`` makes of it (of ``None`` if there is none), again with the newer value
        if somebody was faster, with short random pauses; after the option ``retries`` it raises ``ConflictError``. If
        ``change`` returns ``None`` the value is left as it is, and so is the answer."""
        for tries in itertools.count(1):
            seen = self.read()
            value = change(seen and seen.value)
            if value is None:
                return None
            swapped = self.compare_and_set(seen and seen.version, value)
            if swapped.version is not None:
                return Snapshot(value, swapped.version)
            self._link.perform(self._ask("back_off", tries=tries))
