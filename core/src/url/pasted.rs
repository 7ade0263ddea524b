//! A URL as hosting services, other drivers and ORMs write it, in fencelock's words: their schemes and parameters mean the same here, mean
//! nothing, or are refused by a sentence that names ours.

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::parts::{Parts, parts};
use crate::error::{Error, Result};

/// The URL in fencelock's words.
pub(super) struct Pasted {
    pub(super) text: String,
    /// Parameters that change nothing here.
    pub(super) ignored: Vec<&'static str>,
}

/// Schemes of others, with ours.
const SCHEMES: &[(&str, &str)] = &[
    ("mysql2", "mysql"),
    ("pgsql", "postgres"),
    ("pgsql+advisory", "postgres+advisory"),
    ("postgis", "postgres"),
    ("postgresql+advisory", "postgres+advisory"),
    ("postgresql+row", "postgres+row"),
    ("psql", "postgres"),
    ("redis+socket", "redis+unix"),
    ("redis-sentinel", "redis+sentinel"),
    ("redis-socket", "redis+unix"),
    ("rediss-sentinel", "rediss+sentinel"),
    ("sqlite3", "sqlite"),
    ("trilogy", "mysql"),
    ("unix", "redis+unix"),
    ("valkey", "redis"),
    ("valkeys", "rediss"),
    ("zk", "zookeeper"),
];

/// Drivers that stand behind a `+` in the schemes of `SQLAlchemy`.
const DRIVERS: &[&str] = &[
    "aiomysql",
    "aiosqlite",
    "asyncmy",
    "asyncpg",
    "mariadbconnector",
    "mysqlconnector",
    "mysqldb",
    "pg8000",
    "psycopg",
    "psycopg2",
    "pymysql",
    "pysqlite",
];

/// Parameters by their lower-case letters and digits.
#[derive(Clone, Copy)]
struct Words {
    means: &'static [(&'static str, Means)],
    /// The parameters without a meaning here; one warning names them.
    nothing: &'static str,
}

/// A parameter's meaning.
#[derive(Clone, Copy)]
enum Means {
    /// An option.
    Option(&'static str),
    /// A time in seconds, if it is a number; zero stands for none. Drivers of MySQL that write `connectTimeout` mean milliseconds.
    Seconds(&'static str),
    /// `sslmode`, in words that mean the same.
    Encryption,
    /// Whether TLS is spoken, which the scheme says.
    Encrypted,
    /// Whether the server has to prove itself, which is always so.
    Proof,
    /// Settings that a session begins with.
    Start,
    /// Which of several servers.
    Server,
    User,
    Password,
    Host,
    Port,
    Database,
    /// The name that sentinels give the master.
    Master,
    Refused(&'static str),
}

use Means::{
    Database, Encrypted, Encryption, Host, Master, Option as Opt, Password, Port, Proof, Refused,
    Seconds, Server, Start, User,
};

const BY_SCHEME: &str = "Redis over TLS is `rediss://`; write that, and leave this parameter out";
const NO_KEY_PASSWORD: &str =
    "a private key with a password cannot be read; have `key` name a file without one";
const BY_SSLMODE: &str =
    "write `sslmode=disable` or `sslmode=require`, and leave this parameter out";
const NOT_BY_PASSFILE: &str =
    "a `.pgpass` file is not read; have `password_file` name a file with the password alone";
const NOT_BY_SERVICE: &str =
    "a service file is not read; write host, user and database into the URL";

/// Parameters in the URLs of databases.
const OF_DATABASES: Words = Words {
    means: &[
        ("connecttimeout", Seconds("connect_timeout")),
        ("currentschema", Opt("schema")),
        ("database", Database),
        ("dbname", Database),
        ("host", Host),
        ("options", Start),
        ("passfile", Refused(NOT_BY_PASSFILE)),
        ("password", Password),
        ("port", Port),
        ("requiressl", Encryption),
        ("searchpath", Opt("schema")),
        ("service", Refused(NOT_BY_SERVICE)),
        ("socket", Host),
        ("ssl", Encryption),
        ("sslaccept", Encryption),
        ("sslca", Opt("cacert")),
        ("sslcert", Opt("cert")),
        ("sslcheckhostname", Proof),
        ("ssldisabled", Refused(BY_SSLMODE)),
        ("sslkey", Opt("key")),
        ("sslmode", Encryption),
        ("sslpassword", Refused(NO_KEY_PASSWORD)),
        ("sslrootcert", Opt("cacert")),
        ("sslverifycert", Proof),
        ("sslverifyidentity", Proof),
        ("targetservertype", Server),
        ("targetsessionattrs", Server),
        ("tls", Encryption),
        ("unixsocket", Host),
        ("user", User),
        ("username", User),
        ("usessl", Encryption),
        ("verifyservercertificate", Proof),
    ],
    nothing: "allowpublickeyretrieval applicationname autocommit autoreconnect channelbinding \
        characterencoding charset clientencoding collation connectionlimit encoding \
        fallbackapplicationname gssencmode idleintransactionsessiontimeout keepalives keepalivescount keepalivesidle \
        keepalivesinterval loadbalancehosts loc multistatements parsetime pgbouncer pool poolsize \
        pooltimeout preparedstatementcachesize preparedstatements preparethreshold reapingfrequency reconnect \
        rewritebatchedinserts rewritebatchedstatements servertimezone \
        serverversion sockettimeout sqlmode sslcompression sslminprotocolversion sslnegotiation sslsni statementcachesize \
        statementtimeout supa tcpkeepalive tcpusertimeout timezone uselibpqcompat useunicode workaround zerodatetimebehavior",
};

/// Parameters in the URLs of Redis.
const OF_REDIS: Words = Words {
    means: &[
        ("db", Database),
        ("pass", Password),
        ("password", Password),
        ("sentinelmasterid", Master),
        ("socketconnecttimeout", Seconds("connect_timeout")),
        ("sockettimeout", Seconds("timeout")),
        ("ssl", Encrypted),
        ("sslcacerts", Opt("cacert")),
        ("sslcertfile", Opt("cert")),
        ("sslcertreqs", Proof),
        ("sslcheckhostname", Proof),
        ("sslkeyfile", Opt("key")),
        ("tls", Encrypted),
        ("user", User),
        ("username", User),
        ("virtualhost", Database),
    ],
    nothing: "clientname commandtimeout decoderesponses enablereadycheck encoding family healthcheckinterval \
        lazyconnect libname maxconnections maxretriesperrequest protocol retryonerror retryontimeout socketkeepalive",
};

/// Reads a URL of others in our words. Text that is no such URL is left as it is.
pub(super) fn pasted(text: &str) -> Result<Pasted> {
    // A secret's file ends with the end of a line.
    let text = text.trim();
    let plain = text.strip_prefix("jdbc:").unwrap_or(text);
    let (former, rest) = plain.split_once(':').unwrap_or((plain, ""));
    let former = former.to_ascii_lowercase();
    let scheme = own_scheme(&former);
    let whole = if scheme == former { plain.to_owned() } else { format!("{scheme}:{rest}") };
    let words = match scheme.as_str() {
        scheme if super::is_postgres(scheme) || super::is_mysql(scheme) => Some(OF_DATABASES),
        "redlock" | "rediss+redlock" => Some(OF_REDIS),
        scheme => super::is_redis(scheme).then_some(OF_REDIS),
    };
    let (Some(Parts { user, hosts, tail, .. }), Some(words)) = (parts(&whole), words) else {
        return Ok(Pasted { text: whole, ignored: Vec::new() });
    };
    let mut reading = Reading::new(&scheme, user, hosts, tail);
    let query = tail.split_once('#').map_or(tail, |(before, _)| before).split_once('?');
    for pair in query.map_or("", |(_, query)| query).split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, "true"));
        let letters = name.to_ascii_lowercase().replace(['_', '-', '.'], "");
        let nothing = words.nothing.split(' ').find(|word| *word == letters);
        let known = words.means.iter().find(|(word, _)| *word == letters);
        match (nothing, known) {
            (Some(word), _) => reading.ignored.push(word),
            (None, Some(known)) => reading.take(*known, name, value)?,
            (None, None) => reading.query.push(pair.to_owned()),
        }
    }
    Ok(reading.end())
}

fn own_scheme(scheme: &str) -> String {
    if let Some((_, ours)) = SCHEMES.iter().find(|(theirs, _)| *theirs == scheme) {
        return (*ours).to_owned();
    }
    match scheme.split_once('+') {
        Some((base, driver)) if DRIVERS.contains(&driver) => own_scheme(base),
        _ => scheme.to_owned(),
    }
}

/// A URL that is read, part by part. Parts are encoded as they stand in it.
struct Reading {
    user: String,
    password: Option<String>,
    hosts: String,
    /// Hosts and ports of parameters.
    named: Vec<String>,
    ports: Vec<String>,
    path: String,
    query: Vec<String>,
    ignored: Vec<&'static str>,
    scheme: String,
}

impl Reading {
    fn new(scheme: &str, user: &str, hosts: &str, tail: &str) -> Self {
        let (user, password) = match user.strip_suffix('@').unwrap_or(user).split_once(':') {
            Some((user, password)) => (user, Some(password.to_owned())),
            None => (user.strip_suffix('@').unwrap_or(user), None),
        };
        let end = tail.find(['?', '#']).unwrap_or(tail.len());
        Self {
            user: user.to_owned(),
            password,
            hosts: hosts.to_owned(),
            named: Vec::new(),
            ports: Vec::new(),
            path: Self::path(scheme, &tail[..end], tail),
            query: Vec::new(),
            ignored: Vec::new(),
            scheme: scheme.to_owned(),
        }
    }

    /// Some drivers write the master of sentinels behind a `#`.
    fn path(scheme: &str, path: &str, tail: &str) -> String {
        match tail.split_once('#') {
            Some((_, master)) if scheme.ends_with("+sentinel") => format!("/{master}{path}"),
            _ => path.to_owned(),
        }
    }

    /// Redis on a socket: its parameters have no other place.
    fn is_socket(&self) -> bool {
        self.scheme.ends_with("+unix")
    }

    fn take(
        &mut self,
        (word, means): (&'static str, Means),
        name: &str,
        value: &str,
    ) -> Result<()> {
        let text = value.replace('+', " ");
        let text = percent_decode_str(&text).decode_utf8_lossy().into_owned();
        let part = || utf8_percent_encode(&text, NON_ALPHANUMERIC).to_string();
        match means {
            Opt("cacert") if text == "system" => {}
            Seconds(_) if text.trim_matches(['0', '.']).is_empty() => {}
            Seconds(ours) if text.parse().is_ok_and(|time: f64| (0.0..1e9).contains(&time)) => {
                let in_millis = super::is_mysql(&self.scheme) && !name.contains(['_', '-']);
                let time: f64 = text.parse().unwrap_or_default();
                let millis = if in_millis { time } else { 1000.0 * time };
                self.query.push(format!("{ours}={}ms", millis.round()));
            }
            Opt(ours) | Seconds(ours) => self.query.push(format!("{ours}={value}")),
            Encryption => self.query.push(format!("sslmode={}", encryption(&text))),
            Encrypted if !self.scheme.starts_with("rediss") && !is_no(&text) => {
                return Err(Error::invalid("url", BY_SCHEME));
            }
            Proof if is_no(&text) => return Err(unproven()),
            Start if text.contains("search_path") => {
                let message = "session settings are not taken over: write the schema as `schema=NAME` in place of `options`";
                return Err(Error::invalid("options", message));
            }
            // Of several hosts the one that takes writes is used, whatever the word.
            Server if matches!(&*text, "standby" | "read-only" | "secondary") => {
                let message = format!(
                    "locks are written, so a server that takes no writes is of no use; leave `{name}` out"
                );
                return Err(Error::invalid("target_session_attrs", message));
            }
            User | Password | Database if self.is_socket() => {
                let ours = match means {
                    User => "user",
                    Password => "password",
                    _ => "database",
                };
                self.query.push(format!("{ours}={value}"));
            }
            User => self.user = part(),
            Password => self.password = Some(part()),
            Host => self.named.extend(text.split(',').map(host)),
            Port => self.ports.extend(text.split(',').map(str::to_owned)),
            Database if self.scheme.ends_with("+sentinel") => {
                self.path = format!("{}/{}", self.path.trim_end_matches('/'), part());
            }
            Database => self.path = format!("/{}", part()),
            Master if self.scheme.ends_with("+sentinel") => {
                self.path = format!("/{}{}", part(), self.path);
            }
            Refused(message) => return Err(Error::invalid("url", message)),
            Encrypted | Proof | Start | Server | Master => self.ignored.push(word),
        }
        Ok(())
    }

    /// The hosts, each with its port.
    fn all_hosts(&self) -> String {
        let has_port = |host: &str| host.rsplit(']').next().is_some_and(|end| end.contains(':'));
        let written: Vec<_> = self.hosts.split(',').map(str::to_owned).collect();
        // The port of a host that a parameter replaces counts for it too.
        let usual = written[0].rsplit_once(':').filter(|_| has_port(&written[0]));
        let usual = usual.map(|(_, port)| port.to_owned());
        let hosts = if self.named.is_empty() { &written } else { &self.named };
        let with_port = |(at, host): (usize, &String)| {
            let port = self.ports.get(at).or_else(|| self.ports.first()).or(usual.as_ref());
            match port {
                Some(port) if !has_port(host) => format!("{host}:{port}"),
                _ => host.clone(),
            }
        };
        hosts.iter().enumerate().map(with_port).collect::<Vec<_>>().join(",")
    }

    fn end(mut self) -> Pasted {
        let hosts = self.all_hosts();
        if self.is_socket() {
            let user = (!self.user.is_empty()).then(|| std::mem::take(&mut self.user));
            let written = [("user", user), ("password", self.password.take())];
            for (ours, part) in written {
                let part = part.map(|part| format!("{ours}={}", part.replace('+', "%2B")));
                self.query.extend(part);
            }
        }
        let Self { user, password, path, query, ignored, scheme, .. } = self;
        let password = password.map(|password| format!(":{password}")).unwrap_or_default();
        let at = if user.is_empty() && password.is_empty() { "" } else { "@" };
        let mark = if query.is_empty() { "" } else { "?" };
        let query = query.join("&");
        let text = format!("{scheme}://{user}{password}{at}{hosts}{path}{mark}{query}");
        Pasted { text, ignored }
    }
}

/// A host of a parameter: the path of a socket is written with `%2F` in front of the path of a URL.
fn host(text: &str) -> String {
    if text.starts_with('/') {
        utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
    } else if text.matches(':').count() > 1 && !text.starts_with('[') {
        format!("[{text}]")
    } else {
        text.to_owned()
    }
}

/// The word of `sslmode` for those of others.
fn encryption(text: &str) -> &str {
    match &*text.to_ascii_lowercase().replace('_', "-") {
        "true" | "1" | "yes" | "on" | "required" | "strict" | "" => "require",
        "false" | "0" | "no" | "off" | "disabled" => "disable",
        "preferred" => "prefer",
        "verify-identity" => "verify-full",
        "verify-ca" => "verify-ca",
        // An object of Node's mysql2.
        json if json.starts_with('{') && !json.contains("false") => "require",
        json if json.starts_with('{') => "no-verify",
        _ => text,
    }
}

fn is_no(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    matches!(&*text, "none" | "cert_none" | "optional" | "false" | "0" | "no")
}

fn unproven() -> Error {
    let message = "the server has to prove itself: without that, encryption does not stop an attacker in between. Name the authority of its certificate by `cacert`, or the name it was made for by `tls_name`, and leave this parameter out";
    Error::invalid("url", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(text: &str) -> String {
        pasted(text).map_or_else(|error| format!("refused: {}", error.message()), |url| url.text)
    }

    #[test]
    fn u24_what_services_and_drivers_hand_out_means_the_same_here() {
        for (theirs, expected) in [
            ("postgres://u:p@h:5432/db\n", "postgres://u:p@h:5432/db"),
            (
                "postgresql://u:p@h/db?sslmode=require&channel_binding=require",
                "postgresql://u:p@h/db?sslmode=require",
            ),
            ("postgresql+psycopg://u:p@h/db?application_name=web", "postgresql://u:p@h/db"),
            (
                "jdbc:postgresql://h/db?user=u&password=p%40q&ssl=true",
                "postgresql://u:p%40q@h/db?sslmode=require",
            ),
            ("postgres:///db?host=/run/postgresql&user=me", "postgres://me@%2Frun%2Fpostgresql/db"),
            (
                "postgres://u@h/db?connect_timeout=10&connect_timeout=0",
                "postgres://u@h/db?connect_timeout=10000ms",
            ),
            (
                "postgres://u@h/db?sslrootcert=/ca.pem&sslcert=c&sslkey=k",
                "postgres://u@h/db?cacert=/ca.pem&cert=c&key=k",
            ),
            ("postgres://u@h/db?sslrootcert=system", "postgres://u@h/db"),
            ("postgres://u@h/db?options=endpoint%3Dep-1&pgbouncer=true", "postgres://u@h/db"),
            (
                "postgres://u@h/db?target_session_attrs=any&schema=s&ttl=5s",
                "postgres://u@h/db?schema=s&ttl=5s",
            ),
            ("mysql2://u:p@h/db?reconnect=true&pool=5&encoding=utf8mb4", "mysql://u:p@h/db"),
            (
                "mysql+pymysql://u:p@h/db?charset=utf8mb4&ssl_ca=/ca.pem",
                "mysql://u:p@h/db?cacert=/ca.pem",
            ),
            ("mysql://u:p@h:25060/db?ssl-mode=REQUIRED", "mysql://u:p@h:25060/db?sslmode=require"),
            (
                "mysql://u:p@h/db?ssl={\"rejectUnauthorized\":true}",
                "mysql://u:p@h/db?sslmode=require",
            ),
            ("mysql://u@localhost/db?unix_socket=/run/my.sock", "mysql://u@%2Frun%2Fmy%2Esock/db"),
            (
                "mysql://u@h/db?sslaccept=strict&useSSL=false",
                "mysql://u@h/db?sslmode=require&sslmode=disable",
            ),
            (
                "redis://h?db=3&socket_timeout=0.5&decode_responses=True",
                "redis://h/3?timeout=500ms",
            ),
            (
                "rediss://:p@h:6380/0?ssl_cert_reqs=required&ssl_ca_certs=/ca",
                "rediss://:p@h:6380/0?cacert=/ca",
            ),
            (
                "unix:///run/redis.sock?db=2&username=me&password=p",
                "redis+unix:///run/redis.sock?database=2&user=me&password=p",
            ),
            (
                "unix://me:a+b@/run/redis.sock?db=2",
                "redis+unix:///run/redis.sock?database=2&user=me&password=a%2Bb",
            ),
            (
                "redis+socket:///run/redis.sock?virtual_host=2",
                "redis+unix:///run/redis.sock?database=2",
            ),
            ("valkeys://h", "rediss://h"),
            ("zk://a,b/root", "zookeeper://a,b/root"),
            ("sqlite+pysqlite:///a.db", "sqlite:///a.db"),
            ("postgres:///db?user=u&port=5433&host=localhost", "postgres://u@localhost:5433/db"),
            ("postgres://u@h:5433/db?host=/run/pg", "postgres://u@%2Frun%2Fpg:5433/db"),
            ("postgres://u@/db?host=a:1&host=b:2", "postgres://u@a:1,b:2/db"),
            ("postgres://u@/db?host=a,b&port=1,2", "postgres://u@a:1,b:2/db"),
            ("jdbc:postgresql://h/db?user=u&currentSchema=app", "postgresql://u@h/db?schema=app"),
            (
                "jdbc:mysql://h/db?user=u&connectTimeout=5000",
                "mysql://u@h/db?connect_timeout=5000ms",
            ),
            ("trilogy://u@h/db?connect_timeout=5", "mysql://u@h/db?connect_timeout=5000ms"),
            ("redis-sentinel://a,b/0#main", "redis+sentinel://a,b/main/0"),
            ("redis+sentinel://a/main?db=2", "redis+sentinel://a/main/2"),
            ("rediss-sentinel://a,b/0?sentinelMasterId=main", "rediss+sentinel://a,b/main/0"),
            (
                "postgresql+advisory://u@h/db?serverVersion=16&charset=utf8",
                "postgres+advisory://u@h/db",
            ),
            ("psql://u@h/db?search_path=app&uselibpqcompat=true", "postgres://u@h/db?schema=app"),
            ("rediss://h?ssl=true", "rediss://h"),
            ("postgres://u@h/db?requiressl=1", "postgres://u@h/db?sslmode=require"),
            ("mysql://u@h/db?sql_mode=ANSI&tcpKeepAlive=true", "mysql://u@h/db"),
            ("memory:a", "memory:a"),
            ("locks.db", "locks.db"),
        ] {
            assert_eq!(ours(theirs), expected, "{theirs}");
        }
    }

    #[test]
    fn u24_what_cannot_be_is_refused_in_our_words() {
        for (theirs, says) in [
            ("rediss://:hunter2@h?ssl_cert_reqs=none", "`cacert`"),
            ("mysql://u:hunter2@h/db?ssl_verify_cert=false", "`cacert`"),
            ("mysql+pymysql://u:hunter2@h/db?ssl_check_hostname=false", "`tls_name`"),
            ("redis://:hunter2@h:6380?ssl=true", "`rediss://`"),
            ("postgres://u:hunter2@h/db?options=-csearch_path%3Dx", "`schema=NAME`"),
            ("postgres://u:hunter2@h/db?sslpassword=hunter2", "without one"),
            ("postgres://u@h/db?passfile=/hunter2", "`password_file`"),
            ("mysql://u:hunter2@h/db?ssl_disabled=true", "`sslmode=disable`"),
        ] {
            let text = ours(theirs);
            assert!(text.starts_with("refused: ") && text.contains(says), "{theirs}: {text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn parameters_that_change_nothing_are_named_once_each() {
        let url = pasted("postgres://u@h/db?pgbouncer=true&application_name=x").unwrap();
        assert_eq!(url.ignored, ["pgbouncer", "applicationname"]);
    }
}
