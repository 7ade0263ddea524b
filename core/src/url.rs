//! A URL names a store and sets its options.

mod nodes;
mod parts;
mod pasted;

use percent_encoding::percent_decode_str;
use url::Url;

use self::parts::{Parts, parts, split_hosts};
use self::pasted::{Pasted, pasted};
use crate::driver;
#[cfg(feature = "redis")]
use crate::error::Code;
use crate::error::{Error, Result};
use crate::options::{OptionValue, Options, SslMode};
use crate::port::{LeaseHandle, RuntimeHandle};

/// A parsed URL. Its text, which may hold a password, is never shown.
pub(crate) struct StoreUrl {
    url: Url,
    /// The hosts behind the first, which are no part of a URL as others know it.
    #[cfg_attr(
        not(any(
            feature = "etcd",
            feature = "postgres",
            feature = "redis",
            feature = "zookeeper"
        )),
        allow(dead_code)
    )]
    // Those stand on many hosts.
    others: Vec<String>,
    /// The nodes, if it is a quorum; `url` is then the first of them.
    #[cfg_attr(not(feature = "redis"), allow(dead_code))] // Only Redis stands on many hosts.
    nodes: Vec<Url>,
    /// Parameters that change nothing here.
    ignored: Vec<&'static str>,
}

impl StoreUrl {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let cut = |parts: Parts<'_>| !parts.hosts.is_empty() && parts.tail.contains('@');
        // Its pieces would be shown as a host, a port, a path or an option.
        if parts(text.trim().trim_start_matches("jdbc:")).is_some_and(cut) {
            return Err(Error::invalid(
                "url",
                "an `@` stands behind a `/`, `?` or `#`: in a user or password write those as `%2F`, `%3F`, `%23`, and an `@` in an option as `%40`",
            ));
        }
        let Pasted { text, ignored } = pasted(text)?;
        if let Some(nodes) = nodes::parse(&text) {
            let nodes = nodes?;
            return Ok(Self { url: nodes[0].clone(), others: Vec::new(), nodes, ignored });
        }
        let (first, others) = split_hosts(&text);
        let url = Url::parse(&first).map_err(|error| {
            Error::invalid(
                "url",
                format!("the URL cannot be read ({error}); write `redis://host:6379`, `postgres://user@host/database`, `mysql://user@host/database`, `zookeeper://host,host`, `sqlite:locks.db` or `memory:`"),
            )
        })?;
        Ok(Self { url, others, nodes: Vec::new(), ignored })
    }

    /// Says which parameters change nothing, if there are any.
    pub(crate) fn warning(&self) -> Option<String> {
        let words = self.ignored.join("`, `");
        let message =
            || format!("parameters of the URL that mean nothing here are ignored: `{words}`");
        (!words.is_empty()).then(message)
    }

    /// The options in the query, without what belongs to the address and is read with it.
    pub(crate) fn options(&self) -> Vec<(&str, OptionValue)> {
        let pairs = self.url.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let of_address: &[&str] = match self.url.scheme() {
            scheme if scheme.ends_with("+unix") => &["user", "password", "database"],
            scheme if scheme.ends_with("+sentinel") => &["sentinel_user", "sentinel_password"],
            _ => &[],
        };
        pairs
            .filter(|pair| !of_address.contains(&pair.split('=').next().unwrap_or_default()))
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, "true"));
                let value = value.replace('+', " ");
                (name, percent_decode_str(&value).decode_utf8_lossy().into_owned().into())
            })
            .collect()
    }

    /// A file or a set of locks in memory is on no other machine: `sqlite://a/locks.db` would leave `a` out.
    fn check_host(&self) -> Result<()> {
        let scheme = self.url.scheme();
        match self.url.host_str().filter(|host| !host.is_empty()) {
            Some(_) if matches!(scheme, "memory" | "sqlite") => Err(Error::invalid(
                "url",
                format!(
                    "a `{scheme}` URL names no host; write `{scheme}:name` without the slashes, or three of them before a whole path"
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Certificates with a scheme that is not encrypted are refused: the user expects encryption.
    fn check_tls(&self, options: &Options) -> Result<()> {
        let scheme = nodes::scheme(&self.nodes).unwrap_or(self.url.scheme());
        // The schemes of databases say nothing of it; their own check does. One that is not known is refused as such.
        let says = matches!(
            scheme,
            "memory"
                | "sqlite"
                | "etcd"
                | "etcds"
                | "zookeeper"
                | "zookeepers"
                | "redlock"
                | "rediss+redlock"
        );
        if !says && !is_redis(scheme) {
            return Ok(());
        }
        if matches!(scheme, "etcds" | "zookeepers") || scheme.starts_with("rediss") {
            return match options.sslmode {
                SslMode::Disable => Err(Error::invalid(
                    "sslmode",
                    format!("`{scheme}` means TLS; leave `sslmode` out, or the `s` of the scheme"),
                )),
                _ => Ok(()),
            };
        }
        let encrypts = matches!(options.sslmode, SslMode::VerifyFull | SslMode::VerifyCa);
        match options.of_tls().or(encrypts.then_some("sslmode")) {
            Some(option) => Err(Error::invalid(
                option,
                format!(
                    "`{scheme}` has no TLS, so `{option}` would change nothing; leave it out, or write `rediss://`, \
                     `rediss+sentinel://`, `rediss+cluster://`, `rediss+redlock://`, `etcds://` or `zookeepers://`"
                ),
            )),
            None => Ok(()),
        }
    }

    /// Rows as locks are those of one scheme; on another one a lock would lie elsewhere.
    fn check_rows(&self, options: &Options) -> Result<()> {
        if !options.prefix.is_empty() && !options.on_table.is_empty() {
            let message = "the keys of your own table are names as they are; leave `prefix` or `on_table` out of the client's options";
            return Err(Error::invalid("prefix", message));
        }
        let columns = options.on_table.split_once('(').map(|(_, columns)| columns);
        match columns {
            Some(key) if !key.contains(',') && !self.url.scheme().ends_with("+row") => {
                let message = "a table with its key only, such as `account(id)`, makes locks of its rows: write `postgres+row://` or `mysql+row://`; a version takes three columns: `account(id, version, balance)`";
                Err(Error::invalid("on_table", message))
            }
            _ => Ok(()),
        }
    }

    /// A gate on the server.
    #[cfg(feature = "redis")]
    pub(crate) async fn open_gate(
        &self,
        options: &Options,
        runtime: RuntimeHandle,
    ) -> Result<driver::redis::RedisGate> {
        if !self.nodes.is_empty() {
            let message = "a gate stands on the one server that has the resource, not on a quorum; give that server's URL";
            return Err(Error::new(Code::Unsupported, message));
        }
        self.check_tls(options)?;
        match self.url.scheme() {
            scheme if is_redis(scheme) => {
                let (url, others) = (&self.url, &self.others);
                driver::redis::RedisGate::connect(url, others, options, runtime).await
            }
            _ => {
                let message = "a gate of this kind stands on a Redis server: use a client of one, or `fencelock sql gate` for a table of a database";
                Err(Error::new(Code::Unsupported, message))
            }
        }
    }

    /// Refuses what no store could make good.
    pub(crate) fn check(&self, options: &Options) -> Result<()> {
        self.check_tls(options)?;
        self.check_rows(options)?;
        self.check_names(options)?;
        #[cfg(feature = "redis")]
        for node in &self.nodes {
            driver::redis::RedisStore::check(node, &[])?;
        }
        if !self.nodes.is_empty() {
            return if cfg!(feature = "redis") { Ok(()) } else { Err(Error::not_built("redis")) };
        }
        self.check_host()?;
        match self.url.scheme() {
            "memory" => Ok(()),
            "sqlite" if cfg!(not(feature = "sqlite")) => Err(Error::not_built("sqlite")),
            "sqlite" if self.url.path().is_empty() => {
                Err(Error::invalid("url", "the URL names no file; write `sqlite:locks.db`"))
            }
            "sqlite" => Ok(()),
            #[cfg(feature = "redis")]
            scheme if is_redis(scheme) => driver::redis::RedisStore::check(&self.url, &self.others),
            scheme if is_redis(scheme) => Err(Error::not_built("redis")),
            #[cfg(feature = "etcd")]
            "etcd" | "etcds" => driver::etcd::EtcdStore::check(&self.url, &self.others),
            #[cfg(not(feature = "etcd"))]
            "etcd" | "etcds" => Err(Error::not_built("etcd")),
            #[cfg(feature = "zookeeper")]
            "zookeeper" | "zookeepers" => {
                driver::zookeeper::ZookeeperStore::check(&self.url, &self.others)
            }
            #[cfg(not(feature = "zookeeper"))]
            "zookeeper" | "zookeepers" => Err(Error::not_built("zookeeper")),
            #[cfg(feature = "mysql")]
            scheme if is_mysql(scheme) => driver::mysql::MysqlStore::check(&self.url, &self.others),
            #[cfg(not(feature = "mysql"))]
            scheme if is_mysql(scheme) => Err(Error::not_built("mysql")),
            #[cfg(feature = "postgres")]
            scheme if is_postgres(scheme) => {
                driver::postgres::PostgresStore::check(&self.url, &self.others)
            }
            #[cfg(not(feature = "postgres"))]
            scheme if is_postgres(scheme) => Err(Error::not_built("postgres")),
            scheme if scheme.contains('.') || scheme == "localhost" => Err(Error::invalid(
                "url",
                "the URL begins with a host; write the store's scheme before it: `redis://host:6379`, for a cluster `redis+cluster://host:6379`",
            )),
            _ => Err(Error::invalid(
                "url",
                "no store goes by that scheme; there are `redis://`, `rediss://`, `redis+sentinel://`, `redis+cluster://`, `redis+unix:`, \
                 `redlock://`, `etcd://`, `etcds://`, `zookeeper://`, `zookeepers://`, `postgres://`, `postgres+advisory://`, `postgres+row://`, `mysql://`, `mysql+getlock://`, `mysql+row://`, `sqlite:` and `memory:`",
            )),
        }
    }

    /// Options of other stores are refused: a table named on Redis would be believed to have locks of its own.
    fn check_names(&self, options: &Options) -> Result<()> {
        let scheme = self.url.scheme();
        if options.table != Options::default().table && !is_postgres(scheme) && !is_mysql(scheme) {
            let message =
                "only PostgreSQL and MySQL have tables of a name of your own; leave `table` out";
            return Err(Error::invalid("table", message));
        }
        if !options.schema.is_empty() && !is_postgres(scheme) {
            let message = "only PostgreSQL has schemas; on MySQL name the database in the URL, elsewhere leave `schema` out";
            return Err(Error::invalid("schema", message));
        }
        let takes = is_postgres(scheme) || is_mysql(scheme) || is_redis(scheme);
        if !options.password_file.is_empty() && !takes {
            let message = "only Redis, PostgreSQL and MySQL read a password from a file; write it into the URL, or leave `password_file` out";
            return Err(Error::invalid("password_file", message));
        }
        Ok(())
    }

    #[cfg_attr(
        not(any(
            feature = "etcd",
            feature = "mysql",
            feature = "postgres",
            feature = "redis",
            feature = "sqlite"
        )),
        allow(clippy::unused_async, unused_variables)
    )] // Memory is there at once; ZooKeeper connects later.
    pub(crate) async fn open(
        &self,
        options: &Options,
        runtime: RuntimeHandle,
    ) -> Result<LeaseHandle> {
        self.check(options)?;
        #[cfg(feature = "redis")]
        if !self.nodes.is_empty() {
            return nodes::open(&self.nodes, options, runtime).await;
        }
        #[allow(unused_variables)] // The features decide which of them a store needs.
        let (url, others, again) = (&self.url, &self.others, runtime.clone());
        match url.scheme() {
            "memory" => {
                let memory = driver::memory::Memory::named(url.path(), runtime.process());
                Ok(LeaseHandle::new(memory.store(runtime)))
            }
            #[cfg(feature = "sqlite")]
            "sqlite" => {
                let path = percent_decode_str(url.path()).decode_utf8_lossy().into_owned();
                let store = driver::sqlite::SqliteStore::open(path.as_ref(), options, runtime);
                Ok(LeaseHandle::new(store.await?))
            }
            #[cfg(feature = "etcd")]
            "etcd" | "etcds" => {
                let store = driver::etcd::EtcdStore::connect(url, others, options, again).await?;
                Ok(LeaseHandle::new(crate::Queue::new(store, runtime, options.ttl)))
            }
            #[cfg(feature = "zookeeper")]
            "zookeeper" | "zookeepers" => {
                let store = driver::zookeeper::ZookeeperStore::new(url, others, options, again)?;
                Ok(LeaseHandle::new(crate::Queue::new(store, runtime, options.ttl)))
            }
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => {
                let store = driver::postgres::PostgresStore::connect(url, others, options, runtime);
                Ok(LeaseHandle::new(store.await?))
            }
            #[cfg(feature = "postgres")]
            "postgres+advisory" => {
                let store = driver::postgres::AdvisoryStore::new(url, others, options, again);
                sessions(store?, options, runtime).await
            }
            #[cfg(feature = "postgres")]
            "postgres+row" => {
                let store = driver::postgres::RowStore::new(url, others, options, again);
                sessions(store?, options, runtime).await
            }
            #[cfg(feature = "mysql")]
            "mariadb" | "mysql" => {
                let store = driver::mysql::MysqlStore::connect(url, others, options, runtime);
                Ok(LeaseHandle::new(store.await?))
            }
            #[cfg(feature = "mysql")]
            "mysql+getlock" => {
                let store = driver::mysql::GetLockStore::new(url, others, options, again);
                sessions(store?, options, runtime).await
            }
            #[cfg(feature = "mysql")]
            "mysql+row" => {
                let store = driver::mysql::RowStore::new(url, others, options, again);
                sessions(store?, options, runtime).await
            }
            #[cfg(feature = "redis")]
            _ => {
                let store = driver::redis::RedisStore::connect_all(url, others, options, runtime);
                Ok(LeaseHandle::new(store.await?))
            }
            #[cfg(not(feature = "redis"))]
            _ => Err(Error::internal("a store that is not built was not refused")),
        }
    }
}

/// A store made of sessions that lock.
#[cfg(any(feature = "mysql", feature = "postgres"))]
async fn sessions<S: crate::port::SessionStore>(
    store: S,
    options: &Options,
    runtime: RuntimeHandle,
) -> Result<LeaseHandle> {
    let sessions = crate::Sessions::open(store, runtime, options.ttl, options.timeout);
    Ok(LeaseHandle::new(sessions.await?))
}

/// Whether it names a MySQL or MariaDB database, whatever locks there.
fn is_mysql(scheme: &str) -> bool {
    matches!(scheme, "mariadb" | "mysql" | "mysql+getlock" | "mysql+row")
}

/// Whether it names a PostgreSQL database, whatever locks there.
fn is_postgres(scheme: &str) -> bool {
    matches!(scheme, "postgres" | "postgresql" | "postgres+advisory" | "postgres+row")
}

/// Whether it names one Redis server, or several that are one store.
fn is_redis(scheme: &str) -> bool {
    matches!(
        scheme,
        "redis"
            | "rediss"
            | "redis+unix"
            | "redis+sentinel"
            | "rediss+sentinel"
            | "redis+cluster"
            | "rediss+cluster"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_that_is_cut_is_seen_and_nothing_else_is_taken_for_one() {
        for url in [
            "sqlite:///d/a@b.db",
            "sqlite:x?info=http://ci/a@b",
            "memory:a@b",
            "redis+unix:///run/a@b.sock",
            "redis://me:p@w@h/0?info=a%40b",
        ] {
            assert!(StoreUrl::parse(url).is_ok(), "{url}");
        }
        for url in [
            "redis://me:12?word@h",
            "redis://:p@ss#word@h",
            "redis://:p@ss?word=1@h",
            "redis://me:12/word@h",
            "redlock://me:12?word@h,b,c",
            "redis+sentinel://:p@ss/word@h,i/m",
        ] {
            let refused = StoreUrl::parse(url).err().expect("it is refused");
            assert!(refused.message().contains("%2F"), "{url}: {refused}");
        }
    }
}
