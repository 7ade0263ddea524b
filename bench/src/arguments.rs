//! The command line.

use crate::Result;
use crate::workload::Workload;

/// The workloads to run, and how to run them.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub workloads: Vec<Workload>,
    /// Seconds instead of minutes, and no peers that have to be installed: shows that everything runs.
    pub quick: bool,
    /// One JSON object per workload instead of tables.
    pub json: bool,
    /// Measurements of each contender; the median counts.
    pub rounds: usize,
    /// The peers to measure; all if none is named.
    pub peers: Vec<String>,
}

const USAGE: &str =
    "usage: fencelock-bench [--only WORKLOAD]... [--quick] [--json] [--rounds N] [--peer NAME]...
workloads:";

/// The usage text: the options and the names of all workloads.
fn help() -> String {
    let names = Workload::ALL.iter().map(|some| some.name());
    std::iter::once(USAGE).chain(names).collect::<Vec<_>>().join(" ")
}

impl Arguments {
    /// Reads the words after the program's name.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut arguments =
            Self { workloads: Vec::new(), quick: false, json: false, rounds: 0, peers: Vec::new() };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--only" => {
                    let name = words.next().unwrap_or_default();
                    let workload = Workload::ALL.into_iter().find(|some| some.name() == name);
                    arguments
                        .workloads
                        .push(workload.ok_or(format!("no workload `{name}`\n{}", help()))?);
                }
                "--quick" => arguments.quick = true,
                "--json" => arguments.json = true,
                "--rounds" => arguments.rounds = words.next().unwrap_or_default().parse()?,
                "--peer" => arguments.peers.extend(words.next()),
                _ => return Err(format!("`{word}` is not understood\n{}", help()).into()),
            }
        }
        if arguments.workloads.is_empty() {
            arguments.workloads = Workload::ALL.to_vec();
        }
        if arguments.rounds == 0 {
            arguments.rounds = if arguments.quick { 1 } else { 3 };
        }
        Ok(arguments)
    }
}
