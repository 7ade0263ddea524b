// Made from the core's table of options by `npm run options`.

/** Options of whatever is held. */
export interface HoldOptions {
  /**
   * Length of the lease. If the holder dies, the lock is free again after at most this time. In milliseconds.
   * Default: 30s.
   */
  ttl?: number | undefined;
  /**
   * Information for people who inspect the lock: a short text, or texts by name. As text the latter are JSON,
   * `{"order":"42"}`.
   */
  info?: string | Record<string, string> | undefined;
}

/** Options that a lock and an election have. */
export interface WaitOptions extends HoldOptions {
  /**
   * How long `acquire` waits for the lock before it fails with `timeout`. `0` asks once and does not queue. In
   * milliseconds; null: without end. Default: forever.
   */
  wait?: number | null | undefined;
  /**
   * How the lock is stored. `auto` is the store's own layout. On Redis, `plain:<prefix>` is the string key that
   * redis-py, node-redlock and redsync use, and `redisson` is the layout of Redisson's locks. On ZooKeeper,
   * `kazoo` is that of kazoo's. On PostgreSQL and MySQL, `shedlock` and `spring` are the rows of `ShedLock` and of
   * Spring's `JdbcLockRegistry`. Default: auto.
   */
  dialect?: string | undefined;
}

/** Options of a lock. */
export interface LockOptions extends WaitOptions {
  /**
   * Whether the lease is renewed, at a third of its length, for as long as the guard lives. `false`: a fixed
   * lease. (Runs of jobs are always renewed.) Default: true.
   */
  renew?: boolean | undefined;
  /**
   * The longest time a lock may be held, however often it is renewed. In milliseconds; null: without end. Default:
   * none.
   */
  maxHold?: number | null | undefined;
  /**
   * Whether waiters get the lock in their order of arrival. `auto`: where the store can do that, which is
   * everywhere except on Redlock. `true`: refused where it cannot. `false`: the first client that asks gets a free
   * lock, which gives more throughput; a waiter is passed over at most twice, and for at most a second. Default:
   * auto.
   */
  fair?: boolean | undefined;
  /** How many permits of a semaphore are taken at once, all or none. Not on etcd and ZooKeeper. Default: 1. */
  permits?: number | undefined;
  /**
   * How often a lock may pass from waiter to waiter inside this client (for at most 10 ms) before other clients
   * are served. `0`: never. Default: 16.
   */
  local?: number | undefined;
}

/** Options of a job. */
export interface JobOptions extends HoldOptions {
  /**
   * The shortest time from the start of a job's run to the start of the next one, even if the run ends sooner. In
   * milliseconds; null: without end. Default: none.
   */
  atLeastFor?: number | null | undefined;
  /**
   * The longest time a job's run may take. After that it is lost. In milliseconds; null: without end. Default:
   * none.
   */
  atMostFor?: number | null | undefined;
  /** Whether a job's run that died before its end may run again, for the same scheduled instant. Default: false. */
  retryDead?: boolean | undefined;
}

/** Options of an election. */
export interface ElectionOptions extends WaitOptions {
  /** How often an observer of an election asks who leads. In milliseconds. Default: 1s. */
  observe?: number | undefined;
}

/** Options of a version. */
export interface VersionOptions {
  /**
   * How often the update of a version tries again when another writer was faster, before it fails with `conflict`.
   * Default: 16.
   */
  retries?: number | undefined;
  /**
   * The longest pause before the first of these tries. It doubles with each try, up to 64 times; each pause is a
   * random part of it. In milliseconds. Default: 5ms.
   */
  backoff?: number | undefined;
  /**
   * How long the store keeps a version's value after its last change. In milliseconds; null: without end. Default:
   * forever.
   */
  keep?: number | null | undefined;
  /**
   * On PostgreSQL and MySQL: keeps a version in a row of your own table, written as the table with three of its
   * columns in brackets: `account(id, version, balance)`. The first is the key, whose value is the version's name.
   * The second is a whole number that rises with each change. The third is the value. In a URL whose scheme ends
   * in `+row`: the table with its key only, `account(id)`, whose rows are then the locks.
   */
  onTable?: string | undefined;
}

/** Options of a client: its own, and the defaults of what it makes. */
export interface ClientOptions extends LockOptions, ElectionOptions, JobOptions, VersionOptions {
  /**
   * Text that stands before every name on the store, so that programs share it without meeting: with `shop:` the
   * lock `orders` lies there as `shop:orders`. Not before the keys of your own table (`onTable`).
   */
  prefix?: string | undefined;
  /**
   * How long to wait for an answer of the store. After that the outcome counts as unknown. In milliseconds.
   * Default: 5s.
   */
  timeout?: number | undefined;
  /**
   * On a quorum: the longest lease, and how long a node that may have lost its data does not vote. All clients
   * must use the same value. In milliseconds. Default: 60s.
   */
  maxTtl?: number | undefined;
  /** How long to try to reach the store. After that it counts as unavailable. In milliseconds. Default: 5s. */
  connectTimeout?: number | undefined;
  /**
   * On Redis: how many replicas must confirm a grant or a renewal before it counts. A failover to one of them then
   * loses no lock. Default: 0.
   */
  acks?: number | undefined;
  /** On a database: whether to make fencelock's tables if they are not there. Default: false. */
  create?: boolean | undefined;
  /**
   * On PostgreSQL: the schema in which fencelock's tables and functions lie. Empty: the first one of the user's
   * search path.
   */
  schema?: string | undefined;
  /**
   * On PostgreSQL and MySQL: the name of the table of locks. The names of fencelock's other tables and functions
   * begin with it. Letters a to z, digits and `_`. Tables of another name have other locks. Default: fencelock.
   */
  table?: string | undefined;
  /**
   * On PostgreSQL: whether a commit waits for the server's disk (`durable`). `relaxed` is many times quicker; a
   * crash of the server may then undo the changes of the last second, tokens still rise. Default: durable.
   */
  durability?: 'durable' | 'relaxed' | undefined;
  /**
   * On a database: `verify-full` is TLS with a server that proves to be the one, `disable` is no TLS. `auto`:
   * `verify-full`, but nothing is encrypted on the way to this machine itself (`localhost`, a socket file).
   * `require` means `verify-full` here, `prefer` and `allow` mean `auto`. `verify-ca`, with TLS but on MySQL: the
   * certificate must come from a trusted authority, but may name another host. Default: auto.
   */
  sslmode?: 'auto' | 'verify-full' | 'verify-ca' | 'disable' | 'require' | 'prefer' | 'allow' | undefined;
  /**
   * With TLS: the name that the server's certificate must have, where the server is reached by another name.
   * Empty: the host of the URL.
   */
  tlsName?: string | undefined;
  /**
   * On Redis, PostgreSQL and MySQL: a file with the password, read anew for each connection, so that it may
   * change. A line's end behind it does not count. Empty: the password of the URL.
   */
  passwordFile?: string | undefined;
  /**
   * With TLS (`rediss://`): a file of PEM certificates. Only these authorities are trusted for the server's
   * certificate. Empty: those the system trusts.
   */
  cacert?: string | undefined;
  /** With TLS: a file with this client's own certificate, for servers that ask for one. */
  cert?: string | undefined;
  /** With TLS: a file with the private key of `cert`. */
  key?: string | undefined;
}
