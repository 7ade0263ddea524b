"""The options, as type checkers know them. Written by generate_options.py from the core's table: do not edit."""

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


class HoldOptions(TypedDict, total=False):
    """The options of whatever is held."""

    ttl: Time
    """Length of the lease. If the holder dies, the lock is free again after at most this time. Default: `30s`."""
    info: str | dict[str, str]
    """Information for people who inspect the lock: a short text, or texts by name. As text the latter are JSON,
    `{"order":"42"}`."""


class WaitOptions(HoldOptions, total=False):
    """The options that a lock and an election have."""

    wait: Time | None
    """How long `acquire` waits for the lock before it fails with `timeout`. `0s` asks once and does not queue. Default:
    `forever`."""
    dialect: str
    """How the lock is stored. `auto` is the store's own layout. On Redis, `plain:<prefix>` is the string key that
    redis-py, node-redlock and redsync use, and `redisson` is the layout of Redisson's locks. On ZooKeeper, `kazoo` is
    that of kazoo's. On PostgreSQL and MySQL, `shedlock` and `spring` are the rows of `ShedLock` and of Spring's
    `JdbcLockRegistry`. Default: `auto`."""


class LockOptions(WaitOptions, total=False):
    """The options of a lock."""

    renew: bool
    """Whether the lease is renewed, at a third of its length, for as long as the guard lives. `false`: a fixed lease.
    (Runs of jobs are always renewed.) Default: `true`."""
    max_hold: Time | None
    """The longest time a lock may be held, however often it is renewed. Default: `none`."""
    fair: bool
    """Whether waiters get the lock in their order of arrival. `auto`: where the store can do that, which is everywhere
    except on Redlock. `true`: refused where it cannot. `false`: the first client that asks gets a free lock, which
    gives more throughput; a waiter is passed over at most twice, and for at most a second. Default: `auto`."""
    permits: int
    """How many permits of a semaphore are taken at once, all or none. Not on etcd and ZooKeeper. Default: `1`."""
    local: int
    """How often a lock may pass from waiter to waiter inside this client (for at most 10 ms) before other clients are
    served. `0`: never. Default: `16`."""


class JobOptions(HoldOptions, total=False):
    """The options of a job."""

    at_least_for: Time | None
    """The shortest time from the start of a job's run to the start of the next one, even if the run ends sooner.
    Default: `none`."""
    at_most_for: Time | None
    """The longest time a job's run may take. After that it is lost. Default: `none`."""
    retry_dead: bool
    """Whether a job's run that died before its end may run again, for the same scheduled instant. Default: `false`."""


class ElectionOptions(WaitOptions, total=False):
    """The options of an election."""

    observe: Time
    """How often an observer of an election asks who leads. Default: `1s`."""


class VersionOptions(TypedDict, total=False):
    """The options of a version."""

    retries: int
    """How often the update of a version tries again when another writer was faster, before it fails with `conflict`.
    Default: `16`."""
    backoff: Time
    """The longest pause before the first of these tries. It doubles with each try, up to 64 times; each pause is a
    random part of it. Default: `5ms`."""
    keep: Time | None
    """How long the store keeps a version's value after its last change. Default: `forever`."""
    on_table: str
    """On PostgreSQL and MySQL: keeps a version in a row of your own table, written as the table with three of its
    columns in brackets: `account(id, version, balance)`. The first is the key, whose value is the version's name. The
    second is a whole number that rises with each change. The third is the value. In a URL whose scheme ends in `+row`:
    the table with its key only, `account(id)`, whose rows are then the locks."""


class ClientOptions(LockOptions, ElectionOptions, JobOptions, VersionOptions, total=False):
    """The options of a client: its own, and the defaults of what it makes."""

    prefix: str
    """Text that stands before every name on the store, so that programs share it without meeting: with `shop:` the lock
    `orders` lies there as `shop:orders`. Not before the keys of your own table (`on_table`)."""
    timeout: Time
    """How long to wait for an answer of the store. After that the outcome counts as unknown. Default: `5s`."""
    max_ttl: Time
    """On a quorum: the longest lease, and how long a node that may have lost its data does not vote. All clients must
    use the same value. Default: `60s`."""
    connect_timeout: Time
    """How long to try to reach the store. After that it counts as unavailable. Default: `5s`."""
    acks: int
    """On Redis: how many replicas must confirm a grant or a renewal before it counts. A failover to one of them then
    loses no lock. Default: `0`."""
    create: bool
    """On a database: whether to make fencelock's tables if they are not there. Default: `false`."""
    schema: str
    """On PostgreSQL: the schema in which fencelock's tables and functions lie. Empty: the first one of the user's
    search path."""
    table: str
    """On PostgreSQL and MySQL: the name of the table of locks. The names of fencelock's other tables and functions
    begin with it. Letters a to z, digits and `_`. Tables of another name have other locks. Default: `fencelock`."""
    durability: Literal["durable", "relaxed"]
    """On PostgreSQL: whether a commit waits for the server's disk (`durable`). `relaxed` is many times quicker; a crash
    of the server may then undo the changes of the last second, tokens still rise. Default: `durable`."""
    sslmode: Literal["auto", "verify-full", "verify-ca", "disable", "require", "prefer", "allow"]
    """On a database: `verify-full` is TLS with a server that proves to be the one, `disable` is no TLS. `auto`:
    `verify-full`, but nothing is encrypted on the way to this machine itself (`localhost`, a socket file). `require`
    means `verify-full` here, `prefer` and `allow` mean `auto`. `verify-ca`, with TLS but on MySQL: the certificate must
    come from a trusted authority, but may name another host. Default: `auto`."""
    tls_name: str
    """With TLS: the name that the server's certificate must have, where the server is reached by another name. Empty:
    the host of the URL."""
    password_file: str
    """On Redis, PostgreSQL and MySQL: a file with the password, read anew for each connection, so that it may change. A
    line's end behind it does not count. Empty: the password of the URL."""
    cacert: str
    """With TLS (`rediss://`): a file of PEM certificates. Only these authorities are trusted for the server's
    certificate. Empty: those the system trusts."""
    cert: str
    """With TLS: a file with this client's own certificate, for servers that ask for one."""
    key: str
    """With TLS: a file with the private key of `cert`."""
