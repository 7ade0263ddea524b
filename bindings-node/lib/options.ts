// Made from the core's table of options by `npm run options`.

/** Options of a lock, a job, an election or a version; given to a client, the defaults of its own. */
export interface LockOptions {
  /**
   * Length of the lease. If the holder dies, the lock is free again after at most this time. In milliseconds.
   * Default: 30s.
   */
  ttl?: number;
  /**
   * Whether the lease is renewed, at a third of its length, for as long as the guard lives. `false`: a fixed
   * lease. (Runs of jobs are always renewed.) Default: true.
   */
  renew?: boolean;
  /**
   * How long `acquire` waits for the lock before it fails with `timeout`. `0` asks once and does not queue. In
   * milliseconds; null: without end. Default: forever.
   */
  wait?: number | null;
  /**
   * The longest a lock may be held, however often it is renewed. In milliseconds; null: without end. Default:
   * none.
   */
  maxHold?: number | null;
  /**
   * Whether the lock goes to waiters in their order of arrival. `false`: whoever comes first wins, which gives
   * more throughput; nobody is passed over more than twice or for longer than a second. Default: true.
   */
  fair?: boolean;
  /**
   * How the lock is laid out on the store. `auto` is the store's own; `plain:<prefix>` on Redis is the string key
   * that redis-py, node-redlock, redsync and their like use, `redisson` on Redis is that of Redisson's locks.
   * Default: auto.
   */
  dialect?: string;
  /** A word for people who inspect the lock. */
  label?: string;
  /** More words for people who inspect the lock, by name. */
  metadata?: Record<string, string>;
  /**
   * How often a lock may pass from waiter to waiter inside this client (for at most 10 ms) before others are
   * served. `0`: never. Default: 16.
   */
  local?: number;
  /**
   * How often the update of a version tries again when somebody else was faster, before it fails with `conflict`.
   * Default: 16.
   */
  retries?: number;
  /**
   * The longest pause before the first of these tries; it doubles with each up to 64 times, and is drawn at random
   * below. In milliseconds. Default: 5ms.
   */
  backoff?: number;
  /**
   * How long the store keeps a version's value after its last change. In milliseconds; null: without end. Default:
   * forever.
   */
  keep?: number | null;
  /**
   * The shortest time from the start of a job's run to the next one's, however soon it ends. In milliseconds;
   * null: without end. Default: none.
   */
  atLeastFor?: number | null;
  /** The longest a job's run may take; then it is lost. In milliseconds; null: without end. Default: none. */
  atMostFor?: number | null;
  /** Whether a job's run that died without an end may be run again, for the same scheduled instant. Default: false. */
  retryDead?: boolean;
  /** How often an observer of an election looks who leads. In milliseconds. Default: 1s. */
  observe?: number;
}

/** Options of a client. */
export interface ClientOptions extends LockOptions {
  /**
   * How long to wait for an answer of the store before the outcome counts as unknown. In milliseconds. Default:
   * 5s.
   */
  timeout?: number;
  /**
   * On a quorum: the longest lease, and for how long a node that may have lost its data does not vote. The same
   * for all clients. In milliseconds. Default: 60s.
   */
  maxTtl?: number;
  /** How long to try to reach the store before it counts as unavailable. In milliseconds. Default: 5s. */
  connectTimeout?: number;
  /**
   * On Redis: how many replicas must have a grant, or a renewal, before it counts. A failover to one of them then
   * loses no lock. Default: 0.
   */
  acks?: number;
  /**
   * On TLS (`rediss://`): a file of PEM certificates, the only authorities the server's certificate may come from.
   * Empty: those the system trusts.
   */
  cacert?: string;
  /** On TLS: a file with this client's own certificate, for servers that ask for one. */
  cert?: string;
  /** On TLS: a file with the private key of `cert`. */
  key?: string;
}
