//! Which kind of server it is, and how new.

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

#[cfg(test)]
mod tests {
    use super::Version;

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
