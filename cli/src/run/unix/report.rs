//! The reports of a guardian to its supervisor, a line each.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use rustix::process::Pid;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The command has this number. It runs as soon as there is an order.
    Started(Pid),
    /// It cannot be started, for this reason of the system's.
    Refused(i32),
    /// It was stopped by this signal.
    Stopped(i32),
    /// It ended, with this exit code as shells have it.
    Ended(u8),
}

impl Display for Report {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started(pid) => write!(to, "started {}", pid.as_raw_nonzero()),
            Self::Refused(error) => write!(to, "refused {error}"),
            Self::Stopped(signal) => write!(to, "stopped {signal}"),
            Self::Ended(code) => write!(to, "ended {code}"),
        }
    }
}

impl FromStr for Report {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let (what, number) = line.split_once(' ').ok_or(())?;
        let number = number.parse().map_err(|_| ())?;
        match what {
            "started" => Pid::from_raw(number).map(Self::Started).ok_or(()),
            "refused" => Ok(Self::Refused(number)),
            "stopped" => Ok(Self::Stopped(number)),
            "ended" => u8::try_from(number).map(Self::Ended).map_err(|_| ()),
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_understood() {
        let pid = Pid::from_raw(4711).unwrap();
        for report in
            [Report::Started(pid), Report::Refused(11), Report::Stopped(20), Report::Ended(255)]
        {
            assert_eq!(report.to_string().parse(), Ok(report));
        }
        for rubbish in ["", "ended", "ended 256", "started 0", "ended  1"] {
            assert_eq!(rubbish.parse::<Report>(), Err(()), "{rubbish}");
        }
    }
}
