//! The same workloads for fencelock, its peers and the raw floor, in one run, printed as ratios. See `bench/README.md`.

mod arguments;
mod awake;
mod contender;
mod crossing;
mod database;
mod install;
mod machine;
mod queue_server;
mod report;
mod server;
mod subject;
mod workload;

use std::process::ExitCode;

use arguments::Arguments;
use awake::Awake;
use server::Server;
use workload::Bench;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    if words.next_if(|word| word == subject::WORD).is_some() {
        subject::run(words);
        return ExitCode::SUCCESS;
    }
    if words.next_if(|word| word == awake::WORD).is_some() {
        awake::spin();
        return ExitCode::SUCCESS;
    }
    match Arguments::parse(words).and_then(|arguments| run(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fencelock-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn run(arguments: &Arguments) -> Result<()> {
    let target = fencelock_peers::target(&std::env::current_exe()?);
    let directory = target.join("bench");
    std::fs::create_dir_all(&directory)?;
    let (peers, missing) =
        if arguments.quick { (Vec::new(), Vec::new()) } else { install::peers(&target, arguments) };
    let room = tempfile::tempdir_in(&directory)?;
    let server = Server::start(room.path())?;
    let mut bench = Bench::new(server, peers, room.path(), arguments);
    if !arguments.json {
        println!("{}; medians of {}\n", machine::line(), arguments.rounds);
    }
    for note in missing {
        eprintln!("{note}");
    }
    let _awake = Awake::start(&std::env::current_exe()?);
    for workload in &arguments.workloads {
        for sheet in workload.run(&mut bench).await? {
            if arguments.json {
                println!("{}", serde_json::to_string(&sheet)?);
            } else {
                println!("{}", sheet.text());
            }
        }
    }
    Ok(())
}
