//! The tables of libraries that lock in databases, as their manuals have them made.

/// Those of `ShedLock` and of Spring Integration's `JdbcLockRegistry`, on PostgreSQL.
pub const POSTGRES_TABLES: &str = "CREATE TABLE shedlock (name VARCHAR(64) NOT NULL, lock_until TIMESTAMP NOT NULL, locked_at TIMESTAMP NOT NULL,
        locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name));
    CREATE TABLE int_lock (lock_key CHAR(36) NOT NULL, region VARCHAR(100) NOT NULL, client_id CHAR(36),
        created_date TIMESTAMP NOT NULL, expired_after TIMESTAMP NOT NULL, CONSTRAINT int_lock_pk PRIMARY KEY (lock_key, region));";

/// The same on MariaDB.
pub const MYSQL_TABLES: &str = "CREATE TABLE shedlock (name VARCHAR(64) NOT NULL, lock_until TIMESTAMP(3) NOT NULL,
        locked_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name));
    CREATE TABLE INT_LOCK (LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36),
        CREATED_DATE DATETIME(6) NOT NULL, EXPIRED_AFTER DATETIME(6) NOT NULL, CONSTRAINT INT_LOCK_PK PRIMARY KEY (LOCK_KEY, REGION));";
