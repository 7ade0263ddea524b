//! How a time is written in each language.

/// How a time is written where options are set by name: what a message says that refuses one. The core itself takes text and
/// milliseconds; who writes times in another way turns them into milliseconds first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Times {
    /// As text or as a number of milliseconds.
    #[default]
    Milliseconds,
    /// As text only: a command line, a URL.
    Text,
    /// As text, a number of seconds or a `timedelta`.
    Seconds,
    /// As text or a `Duration`.
    Duration,
}

impl Times {
    /// The accepted form of a time, in words.
    pub(super) fn form(self) -> &'static str {
        match self {
            Self::Milliseconds => {
                "a time such as `30s` or `500ms`, or milliseconds as a number, not below zero"
            }
            Self::Text => "a time such as `30s` or `500ms`, with its unit",
            Self::Seconds => {
                "seconds as a number, not below zero, a timedelta, or a time such as `30s` or `500ms`"
            }
            Self::Duration => "a Duration, not below zero, or a time such as `30s` or `500ms`",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{OptionValue, Options};

    #[test]
    fn a_time_is_asked_for_as_it_is_written_there() {
        let says = |times, value: OptionValue| {
            let mut options = Options { times, ..Options::default() };
            options.set("wait", &value).unwrap_err().to_string()
        };
        let number = |times| says(times, (-5).into());
        assert!(number(Times::Milliseconds).contains("milliseconds as a number"));
        assert!(number(Times::Duration).contains("a Duration"));
        let seconds = number(Times::Seconds);
        assert!(seconds.contains("seconds as a number") && !seconds.contains("milli"), "{seconds}");
        let text = says(Times::Text, "5000".into());
        assert!(text.contains("with its unit") && !text.contains("number"), "{text}");
        let mut options = Options::default();
        let url = options.set_from_url([("ttl", "5000".into())]).unwrap_err().to_string();
        assert!(url.contains("with its unit"), "{url}");
        assert_eq!(options, Options::default());
    }
}
