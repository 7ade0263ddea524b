//! How a script is put together from its parts.

use std::collections::BTreeSet;
use std::ops::Range;

use super::constants::Constants;

/// The lines without what only people read: comments and indentation.
pub(super) fn plain(text: &str) -> String {
    let lines = text.lines().map(str::trim_start).filter(|line| !line.starts_with("--"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// The parts as one script with the words of constants replaced, without functions that nothing in it calls: each run of a script
/// makes all of its functions anew, which takes the server a tenth of a microsecond for each.
pub(super) fn assemble(parts: &[&str], constants: &Constants) -> String {
    // Functions, and lines outside of them.
    let mut chunks: Vec<String> = Vec::new();
    let mut in_function = false;
    for line in parts.iter().flat_map(|part| part.lines()) {
        let plain = line.trim_start();
        if plain.starts_with("--") {
            continue;
        }
        let begins = line.starts_with("local function ");
        if begins || !in_function {
            chunks.push(String::new());
        }
        let chunk = chunks.last_mut().expect("one was just pushed");
        *chunk += plain;
        *chunk += "\n";
        in_function = (begins || in_function) && line != "end";
    }
    let names: BTreeSet<&str> = chunks.iter().filter_map(|chunk| function_name(chunk)).collect();
    // A function is defined above what names it.
    let mut named: BTreeSet<&str> = BTreeSet::new();
    let mut used = Vec::new();
    for chunk in chunks.iter().rev() {
        if function_name(chunk).is_some_and(|name| !named.contains(name)) {
            continue;
        }
        let mut text = String::with_capacity(2 * chunk.len());
        expand(chunk, constants, &mut text);
        let mut rest = &text[..];
        while let Some(word) = word_in(rest) {
            named.extend(names.get(&rest[word.clone()]).copied());
            rest = &rest[word.end..];
        }
        used.push(text);
    }
    used.into_iter().rev().collect()
}

/// The name of the function that the chunk defines, if it defines one.
fn function_name(chunk: &str) -> Option<&str> {
    let definition = chunk.strip_prefix("local function ")?;
    Some(&definition[word_in(definition)?])
}

/// Adds the text to `expanded`, with the words of constants replaced, also in what they stand for.
fn expand(text: &str, constants: &Constants, expanded: &mut String) {
    let (mut added, mut at) = (0, 0);
    while let Some(word) = word_in(&text[at..]) {
        let (begin, end) = (at + word.start, at + word.end);
        at = end;
        let capital = text.as_bytes()[begin].is_ascii_uppercase();
        let constant = capital.then(|| constants.get(&text[begin..end])).flatten();
        if let Some(constant) = constant.filter(|known| text[end..].starts_with(known.ending)) {
            *expanded += &text[added..begin];
            expand(&constant.value, constants, expanded);
            at += constant.ending.len();
            added = at;
        }
    }
    *expanded += &text[added..];
}

/// Where the first word of a text is. Every process looks at all words of all scripts, so this is as quick as it can be without an
/// optimizer.
fn word_in(text: &str) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let is_of_word =
        |at: usize| matches!(bytes[at], b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_');
    let mut begin = 0;
    while begin < bytes.len() && !is_of_word(begin) {
        begin += 1;
    }
    let mut end = begin;
    while end < bytes.len() && is_of_word(end) {
        end += 1;
    }
    (begin < end).then_some(begin..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_carries_what_it_calls_and_nothing_else() {
        let text =
            "local function a()\nreturn 1\nend\nlocal function b()\nreturn a()\nend\nreturn 2\n";
        assert_eq!(assemble(&[text], &Constants::new()), "return 2\n");
        let text = text.replace("return 2", "return b()");
        assert_eq!(assemble(&[&text], &Constants::new()), text);
    }
}
