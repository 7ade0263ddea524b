"""Writes python/fencelock/options.py from the core's table of options; `--check` only compares. Needs the built module."""

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

from fencelock import _native

FILE = Path(__file__).parent / "python" / "fencelock" / "options.py"

HEAD = '''"""The options, as type checkers know them. Written by generate_options.py from the core's table: do not edit."""

import json
from datetime import timedelta
from typing import Literal, TypedDict

from . import _native

Time = float | timedelta | str
"""A time: seconds, a ``timedelta``, or text such as ``500ms``."""


class OptionRow(TypedDict):
    """One row of the table."""

    name: str
    """The name, the same in every language but for its case."""
    kind: Literal["duration", "optional_duration", "boolean", "integer", "text", "info"]
    """The kind of its value."""
    default: str
    """The default, as it would be written in a URL."""
    words: list[str]
    """The only values it takes, if it takes one word out of a few; otherwise empty."""
    scope: Literal["hold", "wait", "lock", "job", "election", "version", "client"]
    """The nouns that take it: all that are held, a lock and an election, one of them, or a client only. Each can also be given to a client."""
    doc: str
    """The description of the option."""


TABLE: tuple[OptionRow, ...] = tuple(json.loads(_native.options()))
"""Every option of this version."""
'''

TYPES = {
    "duration": "Time",
    "optional_duration": "Time | None",
    "boolean": "bool",
    "integer": "int",
    "text": "str",
    "info": "str | dict[str, str]",
}


def type_of(row: dict[str, Any]) -> str:
    """The type of a row's values."""
    words = ", ".join(json.dumps(word) for word in row["words"])
    return f"Literal[{words}]" if words else TYPES[row["kind"]]


def fields(scope: str) -> str:
    """The rows of a scope as members of a class."""
    lines: list[str] = []
    for row in json.loads(_native.options()):
        if row["scope"] == scope:
            meaning = f"{row['doc']} Default: `{row['default']}`." if row["default"] else row["doc"]
            wrapped = textwrap.wrap(f'"""{meaning}"""', 116, break_long_words=False)
            lines += [f"{row['name']}: {type_of(row)}", *wrapped]
    return textwrap.indent("\n".join(lines), "    ")


TEXT = f'''{HEAD}

class HoldOptions(TypedDict, total=False):
    """The options of whatever is held."""

{fields("hold")}


class WaitOptions(HoldOptions, total=False):
    """The options that a lock and an election have."""

{fields("wait")}


class LockOptions(WaitOptions, total=False):
    """The options of a lock."""

{fields("lock")}


class JobOptions(HoldOptions, total=False):
    """The options of a job."""

{fields("job")}


class ElectionOptions(WaitOptions, total=False):
    """The options of an election."""

{fields("election")}


class VersionOptions(TypedDict, total=False):
    """The options of a version."""

{fields("version")}


class ClientOptions(LockOptions, ElectionOptions, JobOptions, VersionOptions, total=False):
    """The options of a client: its own, and the defaults of what it makes."""

{fields("client")}
'''

if "--check" not in sys.argv:
    FILE.write_text(TEXT)
elif FILE.read_text() != TEXT:
    sys.exit(f"{FILE.name} is not what the table says; run generate_options.py")
