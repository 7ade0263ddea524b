//! Processes with all that they have started.

use std::process::{Child, Command};

/// Ends a process and all it has started, which cargo's own end would leave running.
pub(crate) fn end_with_descendants(child: &mut Child) {
    let mut family = vec![child.id().to_string()];
    let mut next = 0;
    while let Some(parent) = family.get(next) {
        family.extend(children(parent));
        next += 1;
    }
    let _ = Command::new("sh").args(["-c", "kill -9 \"$@\"", "kill"]).args(&family).status();
    let _ = child.kill();
    let _ = child.wait();
}

/// The processes started by any thread of a process; none where there is no `/proc`.
fn children(parent: &str) -> Vec<String> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
    let lists = threads.flatten().map(|thread| thread.path().join("children"));
    let lists = lists.filter_map(|list| std::fs::read_to_string(list).ok());
    lists.flat_map(|list| list.split_whitespace().map(String::from).collect::<Vec<_>>()).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    #[test]
    fn grandchildren_end_too() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & echo started; wait"]).stdout(Stdio::piped());
        let begin = Instant::now();
        let mut child = command.spawn().expect("there is a shell");
        let mut words = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        words.next();
        super::end_with_descendants(&mut child);
        // The pipe ends when nobody is left who could write to it.
        assert!(words.next().is_none());
        assert!(begin.elapsed() < Duration::from_secs(30));
    }
}
