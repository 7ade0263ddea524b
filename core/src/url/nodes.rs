//! `redlock://[user:password@]host[:port],host[:port],host[:port][/database][?options]`: the nodes of a quorum; with
//! `rediss+redlock://` each of them over TLS.

use std::collections::BTreeSet;

use url::Url;

use super::{Parts, parts};
use crate::error::{Error, Result};

/// The port of a Redis if the URL names none.
const PORT: u16 = 6379;

/// The scheme of a quorum's URL, and of one whose nodes are spoken to over TLS.
const CLEAR: &str = "redlock";
const SECURE: &str = "rediss+redlock";

/// How the URL began whose nodes these are.
pub(super) fn scheme(nodes: &[Url]) -> Option<&'static str> {
    nodes.first().map(|node| if node.scheme() == "rediss" { SECURE } else { CLEAR })
}

/// The URLs of a quorum's nodes, each with what stands around the list; `None` for any other URL.
pub(super) fn parse(text: &str) -> Option<Result<Vec<Url>>> {
    let Parts { scheme, user, hosts, tail } = parts(text)?;
    let node = match &*scheme.to_ascii_lowercase() {
        CLEAR => "redis",
        SECURE => "rediss",
        _ => return None,
    };
    let url = |place: &str| {
        let url = Url::parse(&format!("{node}://{user}{place}{tail}"));
        url.ok()
            .filter(|url| url.host_str().is_some_and(|host| !host.is_empty()))
            .ok_or_else(malformed)
    };
    Some(hosts.split(',').map(url).collect::<Result<Vec<_>>>().and_then(check))
}

fn malformed() -> Error {
    Error::invalid(
        "url",
        "the URL of a quorum must look like `redlock://[user:password@]host:port,host:port,host:port[/database][?options]` (`rediss+redlock://` with TLS)",
    )
}

/// Two names of one server.
#[cfg(feature = "redis")]
fn same_server(node: &str, other: &str) -> Error {
    let message = format!(
        "the nodes {other} and {node} are one server; the nodes of a quorum must be different servers, or one failure counts double"
    );
    Error::invalid("nodes", message).with("node", node)
}

/// A node as messages name it.
fn name(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
    format!("{host}:{}", url.port().unwrap_or(PORT))
}

/// An odd number of different nodes.
fn check(urls: Vec<Url>) -> Result<Vec<Url>> {
    let mut seen = BTreeSet::new();
    for url in &urls {
        let node = name(url);
        if !seen.insert(node.clone()) {
            let message = format!(
                "the node {node} is named twice; the nodes of a quorum must be different servers, or one failure counts double"
            );
            return Err(Error::invalid("nodes", message).with("node", node));
        }
    }
    if urls.len() < 3 || urls.len().is_multiple_of(2) {
        return Err(crate::Quorum::wrong_number(urls.len()));
    }
    Ok(urls)
}

#[cfg(feature = "redis")]
pub(super) use self::redis::open;

#[cfg(feature = "redis")]
mod redis {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use futures_util::future::{Either, select};
    use futures_util::stream::{FuturesUnordered, StreamExt};
    use url::Url;

    use crate::Quorum;
    use crate::driver::redis::RedisStore;
    use crate::error::Result;
    use crate::options::Options;
    use crate::port::{LeaseHandle, RuntimeHandle};

    use super::{name, same_server};

    /// Once a majority is there, nobody waits longer for the others.
    const PATIENCE: Duration = Duration::from_millis(250);

    /// Connects to the nodes: a majority must be there, the others may come later. What is wrong with one of them for good,
    /// such as a password, is an error at once.
    pub(in crate::url) async fn open(
        urls: &[Url],
        options: &Options,
        runtime: RuntimeHandle,
    ) -> Result<LeaseHandle> {
        let mut nodes = Vec::with_capacity(urls.len());
        let mut first = FuturesUnordered::new();
        for url in urls {
            let (store, run_id) = RedisStore::of_quorum(url, options, runtime.clone())?;
            nodes.push(LeaseHandle::new(store));
            first.push(async move { (name(url), run_id.await) });
        }
        let mut runs: BTreeMap<String, String> = BTreeMap::new();
        let (mut there, mut failure, majority) = (0, None, urls.len() / 2 + 1);
        let mut over = None;
        loop {
            if there >= majority && over.is_none() {
                over = Some(runtime.sleep(PATIENCE));
            }
            let next = match &mut over {
                None => first.next().await,
                Some(over) => match select(first.next(), over).await {
                    Either::Left((next, _)) => next,
                    Either::Right(_) => None,
                },
            };
            match next {
                Some((node, Ok(run))) => {
                    there += 1;
                    let other = runs.entry(run).or_insert_with(|| node.clone());
                    if *other != node {
                        failure = Some((true, same_server(&node, other)));
                    }
                }
                Some((_, Err(error))) if !error.retryable() => failure = Some((true, error)),
                Some((_, Err(error))) => failure = failure.or(Some((false, error))),
                None => break,
            }
        }
        match failure {
            // With the nodes their connections go.
            Some((lasting, error)) if lasting || there < majority => Err(error),
            _ => {
                let quorum = Quorum::new(nodes, runtime, options.max_ttl, options.timeout)?;
                Ok(LeaseHandle::new(quorum))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    fn nodes(url: &str) -> Result<Vec<String>> {
        let urls = parse(url).expect("a quorum's URL")?;
        Ok(urls.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn every_node_has_what_stands_around_the_list() {
        let urls = nodes("redlock://me:p%2Cw@a:7001,B,[::1]:7003/2?ttl=5s").unwrap();
        let expected = [
            "redis://me:p%2Cw@a:7001/2?ttl=5s",
            "redis://me:p%2Cw@B/2?ttl=5s",
            "redis://me:p%2Cw@[::1]:7003/2?ttl=5s",
        ];
        assert_eq!(urls, expected);
        assert!(parse("redis://a,b,c").is_none());
        let secure = nodes("rediss+Redlock://me:pw@a,b:7,c/2").unwrap();
        assert_eq!(secure, ["rediss://me:pw@a/2", "rediss://me:pw@b:7/2", "rediss://me:pw@c/2"]);
        assert_eq!(nodes("REDLOCK://a,b,c").unwrap().len(), 3);
    }

    #[test]
    fn even_and_repeated_nodes_are_named() {
        let error = nodes("redlock://a:1,b:2").unwrap_err();
        assert_eq!((error.code(), error.fields()["count"].as_str()), (Code::Invalid, "2"));
        let error = nodes("redlock://me:hunter2@a,b,A:6379").unwrap_err();
        assert_eq!((error.code(), error.fields()["node"].as_str()), (Code::Invalid, "a:6379"));
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }

    #[test]
    fn what_is_no_list_is_refused_without_being_repeated() {
        for url in ["redlock://", "redlock://:hunter2@a,,b", "redlock://:hunter2@a,b:x,c"] {
            let error = nodes(url).unwrap_err();
            assert_eq!(error.code(), Code::Invalid, "{url}");
            assert!(!format!("{error} {error:?}").contains("hunter2"));
        }
    }
}
