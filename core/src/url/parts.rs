//! A URL of many hosts, taken apart.

/// The parts of a URL of many hosts.
pub(super) struct Parts<'a> {
    pub(super) scheme: &'a str,
    /// With the `@` behind it, if it is there.
    pub(super) user: &'a str,
    pub(super) hosts: &'a str,
    /// From the path on.
    pub(super) tail: &'a str,
}

/// Takes `scheme://user@a:1,b:2/path` apart.
pub(super) fn parts(text: &str) -> Option<Parts<'_>> {
    let (scheme, rest) = text.split_once("://")?;
    // One that stands in an option is none of the URL.
    if scheme.contains([':', '/', '?', '#']) {
        return None;
    }
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (user, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    Some(Parts { scheme, user, hosts, tail })
}

/// Takes the hosts behind the first out.
pub(super) fn split_hosts(text: &str) -> (String, Vec<String>) {
    let Some(Parts { scheme, user, hosts, tail }) = parts(text) else {
        return (text.to_owned(), Vec::new());
    };
    let mut hosts = hosts.split(',');
    let first = hosts.next().unwrap_or_default();
    (format!("{scheme}://{user}{first}{tail}"), hosts.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_behind_the_first_are_set_apart() {
        let split = |text| split_hosts(text);
        let (first, others) = split("redis+sentinel://me:a,b@h1:1,h2:2,h3/m/3?info=a,b");
        assert_eq!(first, "redis+sentinel://me:a,b@h1:1/m/3?info=a,b");
        assert_eq!(others, ["h2:2", "h3"]);
        for whole in [
            "memory:a,b",
            "sqlite:a,b",
            "sqlite:x?info=http://ci/a,b",
            "redis+unix:///a,b",
            "redis://h?info=a=1,b=2",
        ] {
            assert_eq!(split(whole), (whole.to_owned(), vec![]));
        }
    }
}
