//! One connection to a server that takes writes, set up: its version, and how each proves who it is.

use std::future::Future;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, Row as RawRow, SslOpts, Value as RawValue};

use super::fault::{Number, judge, judge_as};
use super::literal;
use crate::driver::addresses::{first, resolve};
use crate::driver::hosts;
use crate::driver::sql::address::Address;
use crate::driver::sql::dialect::Connection as _;
use crate::driver::sql::fault::{Fault, read_only};
use crate::driver::sql::host::{Host, first_host};
use crate::driver::sql::statement::{Answer, Kind, Row, Statement, Value, column};
use crate::driver::tls::Tls;
use crate::driver::within::within;
use crate::error::{Code, Error, Result};
use crate::options::Options;
use crate::port::RuntimeHandle;

/// A server that went without a word is noticed after some of these.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// A connection that lay idle for so long is asked whether it is still there: a statement that is lost with it has an unknown outcome.
const FRESH: Duration = Duration::from_secs(1);
/// It has so long to answer: what stands between may have dropped it without a word.
const PATIENCE: Duration = Duration::from_millis(500);
/// After so long the next address of a host is tried beside those before it: it has to log in within that, since a server counts a
/// connection without a login as a fault of its client.
const STAGGER: Duration = Duration::from_secs(1);

/// How long the server waits for a row, in seconds: the least it can. It is asked again for as long as there is time.
const ROW_WAIT: u32 = 1;
/// How long a connection may lie idle, in seconds: a month.
const IDLE: u32 = 2_592_000;
/// How long the server keeps a row locked for a client that stands still within a transaction, in seconds.
const STALLED: u32 = 1;

/// The query for the server's version, whether it takes no writes, when it writes its log, and whether it can read its clock
/// twice within a statement.
const SERVER: &str = "SELECT VERSION(), CAST(@@global.read_only AS CHAR), @@global.innodb_flush_log_at_trx_commit, SLEEP(0.001), SYSDATE(6) <> NOW(6)";

/// The first statements of each connection.
fn setup() -> String {
    format!(
        "SET NAMES utf8mb4; SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES', autocommit = 1,
             innodb_lock_wait_timeout = {ROW_WAIT}, wait_timeout = {IDLE};
         SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
    )
}

/// A connection to a server that takes writes. It ends when this is dropped.
pub struct Connection {
    conn: Conn,
    /// The servers, as they are shown.
    server: String,
    /// Whether the server writes its log at each commit.
    pub(super) durable: bool,
    pub(super) version: Version,
}

impl Connection {
    /// A connection to the first server that takes writes, in at most `limit`.
    pub(super) async fn open_first(
        address: &Address<SslOpts>,
        runtime: &RuntimeHandle,
        limit: Duration,
    ) -> Result<(Self, Host)> {
        let open = |host: Host| async move { Self::open(address, &host, runtime).await };
        first_host(&address.hosts, &address.used, runtime, limit, open).await
    }

    /// Connects to a server and sets the connection up.
    async fn open(
        address: &Address<SslOpts>,
        host: &Host,
        runtime: &RuntimeHandle,
    ) -> Result<Self> {
        let conn = log_in(address, host, runtime).await?;
        let (server, version) = (host.to_string(), Version::read(""));
        let mut connection = Self { conn, server, durable: false, version };
        let asked = [Statement::bare(setup()), Statement::bare(SERVER)];
        let answer = connection.ask(&asked, false).await.map_err(|fault| fault.failure.error)?;
        let row = answer.row();
        let word =
            |at| row.and_then(|row| column::<&str>(row, at, "server").ok()).unwrap_or_default();
        let unsupported = |message: &'static str| {
            Err(Error::new(Code::Unsupported, message).with("server", host.to_string()))
        };
        let version = Version::read(word(0));
        if version.is_old() {
            return unsupported(
                "the server is too old: MySQL 8.0 or MariaDB 10.4, or a newer one, is needed",
            );
        }
        if !matches!(word(1), "0" | "OFF") {
            return Err(read_only().with("server", host.to_string()));
        }
        if word(4) != "1" {
            return unsupported(
                "the server reads its clock only once in a statement, before it waits for a row; start it without `sysdate-is-now`",
            );
        }
        let durable = matches!(word(2), "1" | "3");
        Ok(Self { server: address.to_string(), durable, version, ..connection })
    }
}

/// A connection to a server, at whichever address of it answers first.
async fn log_in(address: &Address<SslOpts>, host: &Host, runtime: &RuntimeHandle) -> Result<Conn> {
    let fault = |error: mysql_async::Error| judge(host, &error, false).failure.error;
    let options = options(address, host);
    let Host::Tcp(hosts::Host { name, port }) = host else {
        return caught(Conn::new(options)).await.map_err(fault);
    };
    let addresses = resolve(name, *port).await.map_err(|error| fault(error.into()))?;
    let at = |address: SocketAddr| {
        let options = OptsBuilder::from_opts(options.clone()).resolved_ips(Some([address.ip()]));
        async move { caught(Conn::new(options)).await.map_err(fault) }
    };
    let clear = |error: &Error| !error.retryable();
    let connected = first(addresses, STAGGER, runtime, at, clear).await;
    connected.map_err(|refusal| refusal.unwrap_or_else(Error::closed))
}

/// The options for a connection to one of the servers.
fn options(address: &Address<SslOpts>, host: &Host) -> Opts {
    let password = address.password();
    let config = OptsBuilder::default()
        .user(Some(&address.user))
        .pass(password.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
        .db_name(Some(&address.database))
        .prefer_socket(false)
        .tcp_keepalive(Some(KEEPALIVE))
        .stmt_cache_size(8);
    match host {
        Host::Unix(path) => config.socket(Some(path.clone())),
        Host::Tcp(hosts::Host { name, port }) => config
            .ip_or_hostname(name.clone())
            .tcp_port(*port)
            // Tokens of clouds are sent as they are, so to a server that has proved itself only.
            .enable_cleartext_plugin(address.tls.is_some())
            .ssl_opts(address.tls.clone()),
    }
    .into()
}

/// Has a server interrupt what one of its connections does.
pub(super) async fn kill_query(
    address: &Address<SslOpts>,
    host: &Host,
    number: i64,
    runtime: &RuntimeHandle,
) {
    if let Ok(mut conn) = log_in(address, host, runtime).await {
        let _ = conn.query_drop(format!("KILL QUERY {number}")).await;
        let _ = conn.disconnect().await;
    }
}

impl crate::driver::sql::dialect::Connection for Connection {
    type Known = Number;

    async fn ask_of(
        &mut self,
        statements: &[Statement],
        decides: bool,
        known: &'static [Number],
    ) -> Result<Answer, Fault> {
        let answer = caught(carry_out(&mut self.conn, statements)).await;
        answer.map_err(|error| judge_as(&self.server, &error, decides, known))
    }

    /// The server ends a connection that stands still within a transaction.
    fn transaction(&self) -> [Vec<Statement>; 3] {
        let silent = |seconds: u32| format!("SET SESSION wait_timeout = {seconds}");
        let bare = |texts: &[&str]| texts.iter().map(|&text| Statement::bare(text)).collect();
        let (stalled, idle) = (silent(STALLED), silent(IDLE));
        [
            bare(&[&stalled, "BEGIN"]),
            bare(&["COMMIT", &idle]),
            bare(&["ROLLBACK", "SET SESSION time_zone = '+00:00'", &idle]),
        ]
    }

    async fn is_sound(&mut self, idle: Duration, runtime: &RuntimeHandle) -> bool {
        let ping = self.conn.ping();
        idle < FRESH || within(runtime, PATIENCE, ping).await.is_some_and(|it| it.is_ok())
    }
}

/// Runs a call of the driver. A panic in it, which some servers can cause, loses the connection, and the client goes on.
async fn caught<T>(
    work: impl Future<Output = Result<T, mysql_async::Error>>,
) -> Result<T, mysql_async::Error> {
    let panicked = |_| Err(mysql_async::Error::Other("the driver of the server panicked".into()));
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(panicked)
}

/// One statement that is asked again and again is prepared; several are one text, with the values in it.
async fn carry_out(
    conn: &mut Conn,
    statements: &[Statement],
) -> Result<Answer, mysql_async::Error> {
    macro_rules! read {
        ($result:expr) => {{
            let (mut result, mut sets) = ($result, Vec::new());
            while !result.is_empty() {
                let rows = result.collect::<RawRow>().await?;
                sets.push(rows.into_iter().map(row).collect());
            }
            let (changed, last_id) = (result.affected_rows(), result.last_insert_id());
            result.drop_result().await?;
            Ok(Answer { sets, changed, last_id })
        }};
    }
    if let [Statement { text, values, kind: Kind::Kept }] = statements {
        let (text, values) = literal::marked(text, values);
        return read!(conn.exec_iter(text, values).await?);
    }
    let texts: Vec<_> = statements.iter().map(literal::written).collect();
    read!(conn.query_iter(texts.join("; ")).await?)
}

fn row(row: RawRow) -> Row {
    let value = |value| match value {
        RawValue::NULL => Value::Null,
        RawValue::Bytes(bytes) => String::from_utf8(bytes).map_or(Value::Unread, Value::Text),
        RawValue::Int(number) => Value::Int(number),
        RawValue::UInt(number) => i64::try_from(number).map_or(Value::Unread, Value::Int),
        _ => Value::Unread,
    };
    Row(row.unwrap().into_iter().map(value).collect())
}

/// The kind and the version of a server, from `VERSION()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) is_mariadb: bool,
    /// The first two of its numbers.
    pub(super) number: (u32, u32),
}

impl Version {
    pub(super) fn read(text: &str) -> Self {
        // An old way to say that it is a MariaDB.
        let text = text.strip_prefix("5.5.5-").unwrap_or(text);
        let mut numbers = text.split(['.', '-']).map_while(|word| word.parse::<u32>().ok());
        let number = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
        Self { is_mariadb: text.contains("MariaDB"), number }
    }

    /// Whether it is older than what the statements need.
    pub(super) fn is_old(self) -> bool {
        self.number < if self.is_mariadb { (10, 4) } else { (8, 0) }
    }

    /// Whether it can leave out rows that somebody has locked.
    pub(super) fn skips_locked(self) -> bool {
        !self.is_mariadb || self.number >= (10, 6)
    }
}

/// Refuses files that cannot be used, and says what connections need of them.
#[cfg(feature = "tls")]
pub(super) fn tls(options: &Options) -> Result<SslOpts> {
    use std::path::PathBuf;

    use mysql_async::ClientIdentity;
    use rustls::crypto::{CryptoProvider, ring};

    use crate::error::{Code, Error};
    use crate::options::SslMode;

    if options.sslmode == SslMode::VerifyCa {
        // Its own switch for this looks for words that rustls does not write any more.
        let message = "the driver of MySQL checks the name in the server's certificate too; give that by `tls_name`, with `sslmode=verify-full`";
        return Err(Error::new(Code::Unsupported, message));
    }
    Tls::new(options)?;
    // The client takes the one of the whole process, and would fail where two could be meant.
    if CryptoProvider::get_default().is_none() {
        // Somebody else may have been faster: then that one counts.
        let _ = ring::default_provider().install_default();
    }
    let roots = match &*options.cacert {
        "" => Tls::known_authorities().into_iter().map(|der| der.to_vec().into()).collect(),
        file => vec![PathBuf::from(file).into()],
    };
    let identity = (!options.cert.is_empty()).then(|| {
        ClientIdentity::new(PathBuf::from(&options.cert).into(), PathBuf::from(&options.key).into())
    });
    let proof = SslOpts::default()
        .with_disable_built_in_roots(true)
        .with_root_certs(roots)
        .with_client_identity(identity);
    let name = (!options.tls_name.is_empty()).then(|| options.tls_name.clone());
    Ok(proof.with_danger_tls_hostname_override(name))
}

#[cfg(not(feature = "tls"))]
pub(super) fn tls(options: &Options) -> Result<SslOpts> {
    Tls::new(options).map(|tls| match tls {})
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::{Version, caught};

    #[test]
    fn u13_a_panic_of_the_driver_is_an_error() {
        let panics = caught::<()>(async { panic!("feature is disabled") });
        let error = panics.now_or_never().expect("it does not wait").unwrap_err();
        assert!(matches!(error, mysql_async::Error::Other(_)), "{error}");
    }

    #[test]
    fn both_kinds_of_servers_have_their_own_numbers() {
        for version in
            ["8.0.36", "8.4.0-commercial", "5.5.5-10.11.14-MariaDB-0+deb12u2", "11.4.2-MariaDB"]
        {
            assert!(!Version::read(version).is_old(), "{version}");
        }
        for version in ["5.7.44-log", "10.3.39-MariaDB", "5.5.5-10.1.48-MariaDB", "what"] {
            assert!(Version::read(version).is_old(), "{version}");
        }
        for (version, skips) in
            [("8.0.36", true), ("10.5.8-MariaDB", false), ("10.6.1-MariaDB", true)]
        {
            assert_eq!(Version::read(version).skips_locked(), skips, "{version}");
        }
    }
}
