//! A password in a URL is shown to nobody: not by `ps`, not in a message.

use std::env;
use std::ffi::{OsStr, OsString};

/// How the program hands itself a URL that must not stand in its arguments. Never passed on to a command.
pub(crate) const VARIABLE: &str = "FENCELOCK_URL_FROM_FLAG";

/// The subcommands that look into that variable.
const USERS: [&str; 5] = ["run", "job", "inspect", "break", "ls"];

/// The password of a URL, also of one that is none because a `/`, `?` or `#` in the password is not encoded.
fn password(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let user = rest.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
    let password = user.map(|(_, password)| password).or_else(|| parameter(rest));
    password.filter(|password| !password.is_empty())
}

/// The password in the query, where some drivers and sockets have it.
fn parameter(rest: &str) -> Option<&str> {
    let pairs = rest.split_once('?')?.1.split('&').filter_map(|pair| pair.split_once('='));
    let secret = |name: &str| matches!(name, "password" | "pass" | "sentinel_password");
    pairs.into_iter().find(|(name, _)| secret(&name.to_ascii_lowercase())).map(|(_, value)| value)
}

/// Arguments can be read by every user of the machine. If `--url` holds a password, the program starts itself anew, in
/// the same process, with the URL in its environment instead.
pub(crate) fn leave_the_arguments(arguments: &[OsString]) {
    if let Some((others, url)) = without_secret_url(arguments) {
        start_anew(&others, &url);
    }
}

#[cfg(unix)]
fn start_anew(arguments: &[OsString], url: &OsStr) {
    use std::os::unix::process::CommandExt as _;
    let error = std::process::Command::new(crate::run::itself())
        .arg0(arguments.first().map_or("fencelock".as_ref(), OsString::as_os_str))
        .args(arguments.iter().skip(1))
        .env(VARIABLE, url)
        .exec();
    crate::exit::say(format_args!(
        "the password in --url stays visible to `ps` ({error}); use FENCELOCK_URL"
    ));
}

/// On Windows only this user and administrators can read them.
#[cfg(windows)]
fn start_anew(_: &[OsString], _: &OsStr) {}

/// The arguments without a `--url` that holds a password, and that URL.
fn without_secret_url(arguments: &[OsString]) -> Option<(Vec<OsString>, OsString)> {
    if !USERS.iter().any(|user| arguments.get(1).is_some_and(|name| name == user)) {
        return None;
    }
    let end = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    for at in 0..end {
        let argument = arguments[at].as_encoded_bytes();
        let (url, length) = match argument.strip_prefix(b"--url") {
            Some(b"") => (arguments.get(at + 1)?.as_encoded_bytes(), 2),
            Some(rest) if rest.starts_with(b"=") => (&rest[1..], 1),
            _ => continue,
        };
        // What is no text is refused where it stands.
        if let Some(url) = str::from_utf8(url).ok().filter(|url| password(url).is_some()) {
            let others = [&arguments[..at], &arguments[at + length..]].concat();
            return Some((others, url.into()));
        }
    }
    None
}

/// The text with every password that stands in an argument blotted out: a complaint about arguments quotes them.
pub(crate) fn blot_out(text: String) -> String {
    env::args_os().fold(text, |text, argument| match password(&argument.to_string_lossy()) {
        Some(password) => {
            text.replace(&format!(":{password}@"), ":***@").replace(&format!("={password}"), "=***")
        }
        None => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn only_a_password_is_a_secret() {
        assert_eq!(password("redis://:s3cret@host/0"), Some("s3cret"));
        assert_eq!(password("redis://user:p@ss@host"), Some("p@ss"));
        assert_eq!(password("redis://:s/3?c#r@et@host"), Some("s/3?c#r@et"));
        assert_eq!(
            password("jdbc:postgresql://h/db?user=u&password=s3cret&ssl=true"),
            Some("s3cret")
        );
        assert_eq!(password("redis+unix:///s?password=s3cret"), Some("s3cret"));
        for plain in ["redis://host:6379", "redis://user@host", "sqlite:a:b@c"] {
            assert_eq!(password(plain), None, "{plain}");
        }
    }

    #[test]
    fn the_url_leaves_the_arguments_and_the_command_keeps_its_own() {
        let line = "fencelock run --url redis://:x@h a -- tool --url redis://:y@h";
        let (others, url) = without_secret_url(&arguments(line)).unwrap();
        assert_eq!(others, arguments("fencelock run a -- tool --url redis://:y@h"));
        assert_eq!(url, "redis://:x@h");
        let joined = "fencelock ls --url=redis://:x@h b";
        assert_eq!(without_secret_url(&arguments(joined)).unwrap().0, arguments("fencelock ls b"));
        assert!(
            without_secret_url(&arguments("fencelock run -- tool --url redis://:y@h")).is_none()
        );
    }
}
