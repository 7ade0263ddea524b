//! The book in `docs/`: its summary names every page, pages stay short, and every link of the book and of the
//! READMEs leads to a file that is there, and to a heading if it names one.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// The most lines of a page, and of a page of reasons.
const LINES: usize = 150;
const REASONS: usize = 60;
/// The project's own address, for pages that a registry shows elsewhere.
const OWN: &str = "https://github.com/fencelock/fencelock/blob/main/";
/// Documents that a registry shows, where a relative link leads nowhere.
const SHOWN_ELSEWHERE: &[&str] =
    &["bindings-node/README.md", "bindings-python/README.md", "bindings-wasm/README.md"];
/// Documents beside the book.
const BESIDE: &[&str] = &[
    "README.md",
    "SECURITY.md",
    "bindings-jvm/README.md",
    "bindings-node/README.md",
    "bindings-python/README.md",
    "bindings-uniffi/README.md",
    "bindings-uniffi/ruby/README.md",
    "bindings-wasm/README.md",
    "cli/README.md",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The pages below a folder, as paths from the root.
fn pages(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(folder)).expect("the folder is there");
    let mut found = Vec::new();
    for entry in entries {
        let name = entry.expect("an entry can be read").file_name().into_string().expect("UTF-8");
        let path = format!("{folder}/{name}");
        if root().join(&path).is_dir() {
            found.extend(pages(&path));
        } else if Path::new(&path).extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Where a page's links lead, and by which names its headings are found.
struct Page {
    links: Vec<String>,
    headings: BTreeSet<String>,
}

fn read(page: &str) -> Page {
    let text = fs::read_to_string(root().join(page));
    let text = text.unwrap_or_else(|error| panic!("{page}: {error}"));
    let (mut links, mut headings, mut heading) = (Vec::new(), BTreeSet::new(), None::<String>);
    for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                links.push(dest_url.into_string());
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => headings.extend(heading.take().map(|text| id(&text))),
            Event::Text(words) | Event::Code(words) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&words);
                }
            }
            _ => {}
        }
    }
    Page { links, headings }
}

/// The anchor of a heading, as mdBook and GitHub make it.
fn id(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|c| match c {
        c if c.is_alphanumeric() || matches!(c, '_' | '-') => Some(c.to_ascii_lowercase()),
        c if c.is_whitespace() => Some('-'),
        _ => None,
    });
    kept.collect()
}

/// The file a relative link leads to, as a path from the root, and the anchor.
fn target(page: &str, link: &str) -> Option<(String, Option<String>)> {
    let (page, link) = link.strip_prefix(OWN).map_or((page, link), |path| ("", path));
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) =
        link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let mut path = PathBuf::from(page);
    if !file.is_empty() {
        path.pop();
        for part in Path::new(file).components() {
            match part {
                Component::ParentDir => {
                    assert!(path.pop(), "{page}: {link} leads out of the project");
                }
                part => path.push(part),
            }
        }
    }
    Some((path.to_str().expect("UTF-8").to_owned(), anchor.map(str::to_owned)))
}

#[test]
fn the_summary_names_every_page_once() {
    let links = read("docs/SUMMARY.md").links;
    let mut named: Vec<String> = links.iter().map(|link| format!("docs/{link}")).collect();
    named.sort();
    let mut there = pages("docs");
    there.retain(|page| page != "docs/SUMMARY.md");
    assert_eq!(named, there);
}

#[test]
fn pages_stay_short() {
    for page in pages("docs") {
        let most = if page.starts_with("docs/design/") { REASONS } else { LINES };
        let lines = fs::read_to_string(root().join(&page)).expect("it is there").lines().count();
        assert!(lines <= most, "{page} has {lines} lines, the most is {most}");
    }
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    for page in pages("docs").into_iter().chain(BESIDE.iter().map(|page| (*page).to_owned())) {
        for link in read(&page).links {
            let Some((path, anchor)) = target(&page, &link) else { continue };
            if !root().join(&path).exists() {
                broken.push(format!("{page}: there is no file `{link}`"));
            } else if let Some(anchor) = anchor
                && !read(&path).headings.contains(&anchor)
            {
                broken.push(format!("{page}: there is no heading `{link}`"));
            }
        }
    }
    for page in SHOWN_ELSEWHERE {
        let relative = read(page).links.into_iter().filter(|link| !link.contains("://"));
        broken.extend(relative.map(|link| format!("{page}: `{link}` is relative")));
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn anchors_are_those_of_mdbook() {
    assert_eq!(id("Redis: users, TLS, `a_b` — Sentinel"), "redis-users-tls-a_b--sentinel");
    let led = target("docs/how-to/a.md", "../reference/redis.md#rights");
    assert_eq!(led, Some(("docs/reference/redis.md".to_owned(), Some("rights".to_owned()))));
    let own = target("cli/README.md", &format!("{OWN}docs/how-to/a.md"));
    assert_eq!(own, Some(("docs/how-to/a.md".to_owned(), None)));
    assert_eq!(target("README.md", "https://example.com"), None);
}
