"""Gates: writes of keys on Redis that refuse stale tokens."""

import json
from typing import Any

from ._link import Link


class Gate:
    """Writes keys on the Redis server of a client, each only with a token that is not older than the newest one that has written it.
    Made by ``Client.gate``.

    The check and the write are one script. An older token raises ``LockLostError``, and nothing is written; equal ones pass. The
    token may be that of a lock on any other store. Beside every key ``K`` that was written so lies its newest token, under
    ``fencelock:{tag}:gate:K`` and without an end: delete it together with the key.
    """

    def __init__(self, link: Link) -> None:
        self._link = link

    def set(self, key: str, token: int, value: str) -> None:
        """Sets a key to a text."""
        self._link.perform(writing(key, token, {"set": value}))

    def delete(self, key: str, token: int) -> bool:
        """Deletes a key; whether it was there."""
        return self._link.perform(writing(key, token, "delete"))

    def increment(self, key: str, token: int, by: int = 1) -> int:
        """Adds to a whole number, which is 0 if the key is not there; the sum."""
        return self._link.perform(writing(key, token, {"increment": by}))


def writing(key: str, token: int, write: Any) -> str:
    """Asks the core to write."""
    return json.dumps({"op": "gate", "resource": key, "token": token, "write": write})
