//! Bad input: a code of its own, one line that says what to do, never a password.

use crate::scene;

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use fencelock_tests::ended;
use scene::{Finished, Running, Scene};

/// The line after `fencelock: `, with its exit code.
fn refused(run: &Finished) -> (i32, &str) {
    assert_eq!(run.out, "");
    let line = run.err.strip_prefix("fencelock: ").unwrap_or_else(|| panic!("{}", run.err));
    assert_eq!(line.lines().count(), 1, "{line}");
    (run.code.unwrap(), line.trim_end())
}

#[test]
fn wrong_usage_is_64() {
    let scene = Scene::new();
    for arguments in [
        &[][..],
        &["hold"],
        &["run", "it"],
        &["run", "--", "true"],
        &["run", "it", "--lock", "it", "--", "true"],
        &["run", "it", "true"],
        &["run", "it", "--wait", "1s", "--no-wait", "--", "true"],
        &["run", "it", "--tll", "1s", "--", "true"],
        &["inspect"],
        &["break"],
        &["break", "it", "--token", "one"],
        &["ls", "-o", "yaml"],
    ] {
        let run = scene.run(arguments);
        assert_eq!((run.code, run.out.as_str()), (Some(64), ""), "{arguments:?}");
        assert!(run.err.contains("Usage: ") || run.err.contains("--help"), "{}", run.err);
    }
    assert_eq!(scene.run(&["--help"]).code, Some(0));
    assert_eq!(
        scene.run(&["--version"]).out,
        concat!("fencelock ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn a_run_has_one_name() {
    let scene = Scene::new();
    for (named, complaint) in [
        (&[][..], "required arguments were not provided:\n  <NAME>"),
        (&["it", "--lock", "it"], "'[NAME]' cannot be used with '--lock <NAME>'"),
        (&["--lock", "it", "it"], "cannot be used with"),
    ] {
        let run = scene.run(&[&["run"], named, &["--", "echo", "ran"]].concat());
        assert_eq!((run.code, run.out.as_str()), (Some(64), ""), "{named:?}");
        assert!(run.err.contains(complaint), "{}", run.err);
    }
}

#[test]
fn names_and_options_that_cannot_be_are_78() {
    let scene = Scene::new();
    let long = "x".repeat(513);
    for (options, complaint) in [
        (&[""][..], "must not be empty"),
        (&[&long], "longer than 512 bytes"),
        (&["a\nb"], "control characters"),
        (&["it", "--ttl", "0s"], "`ttl` must be between 10 ms and 30 days"),
        (&["it", "--ttl", "31days"], "`ttl` must be between 10 ms and 30 days"),
        (&["it", "--ttl", "soon"], "`ttl` must be a time, not below zero"),
        (&["it", "--ttl", "5000"], "as text with its unit, such as `30s`"),
        (&["it", "-o", "max_hold=5"], "as text with its unit, such as `30s`"),
        (&["it", "--wait=-1s"], "`wait` must be a time, not below zero"),
        (&["it", "--max-hold", "0s"], "`max_hold` must be longer than zero"),
        (&["it", "-o", "tll=3s"], "the nearest is `ttl`"),
        (&["it", "-o", "ttl"], "write `--option name=value`"),
        (&["it", "-o", "dialect=plain:"], "does not speak the dialect `plain`"),
    ] {
        let run = scene.run(&[&["run"], options, &["--", "echo", "ran"]].concat());
        let (code, line) = refused(&run);
        assert_eq!(code, 78, "{options:?}: {line}");
        assert!(line.contains(complaint), "{line}");
    }
    assert_eq!(refused(&scene.run(&["inspect", ""])).0, 78);
    assert_eq!(refused(&scene.run(&["ls", "a\nb"])).0, 78);
}

#[test]
fn urls_that_cannot_be_are_78_and_show_no_password() {
    let scene = Scene::new();
    for url in [
        "",
        "locks.db",
        "redis://:hunter2@host:port",
        "mongodb://me:hunter2@host",
        "sqlite:",
        "sqlite:x?tll=3s",
        "sqlite:absent/locks.db",
        "sqlite://me:hunter2@x/y?ttl=0s",
        "redis://me:12?hunter2@host",
        "redis://me:12?hunter2=1@host",
        "redis://me:12/hunter2@host",
        "redis://:hunter2/x@host",
        "redis://:x#hunter2@host",
        "redlock://me:12?hunter2@host,b,c",
        "redis://:p@ss#hunter2@host",
        "redis://:p@ss?hunter2=1@host",
    ] {
        for arguments in [
            &["run", "it", "--url", url, "--", "echo", "ran"][..],
            &["inspect", "it", "--url", url],
            &["break", "it", "--url", url],
            &["ls", &format!("--url={url}")],
        ] {
            let run = scene.run(arguments);
            let (code, line) = refused(&run);
            assert_eq!(code, 78, "{url}: {line}");
            assert!(!line.contains("hunter2"), "{line}");
        }
    }
    for typo in [
        &["ls", "--ulr=redis://:hunter2@host", "redis://:hunter2@host"][..],
        &["ls", "x", "redis://:a/hunter2@h"],
        &["ls", "x", "redis://:a#hunter2@h"],
        &["ls", "x", "redis://:a?hunter2@h"],
    ] {
        let typo = scene.run(typo);
        assert_eq!(typo.code, Some(64));
        assert!(!typo.err.contains("hunter2"), "{}", typo.err);
    }
    for option in ["redis://:hunter2@h", "redis://:hunter2@h=1", "ttl?:hunter2@h=1"] {
        let run = scene.run(&["run", "it", "-o", option, "--", "true"]);
        assert_eq!(run.code, Some(78));
        assert!(!run.err.contains("hunter2"), "{}", run.err);
    }
}

#[test]
fn arguments_that_are_no_text_are_64_and_show_no_password() {
    let scene = Scene::new();
    let broken = |text: &[u8]| OsStr::from_bytes(text).to_owned();
    for arguments in [
        vec!["run".into(), broken(b"\xff"), "--".into(), "true".into()],
        vec!["inspect".into(), broken(b"a\xff")],
        vec!["ls".into(), "--url".into(), broken(b"redis://:hunter2\xff@h")],
        vec!["ls".into(), broken(b"--url=redis://:hunter2\xff@h")],
        vec!["ls".into(), broken(b"\xff"), "redis://:hunter2@h".into()],
        vec!["run".into(), "--lcok".into(), "x".into(), "--".into(), broken(b"\xff")],
    ] {
        let run = ended::output(scene.fencelock(&[]).args(&arguments));
        let said = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(64), "{arguments:?}: {said}");
        assert!(!said.contains("hunter2") && !said.contains("panicked"), "{said}");
    }
}

#[test]
fn a_server_that_is_absent_is_69_and_one_that_refuses_is_77() {
    let scene = Scene::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let url = |limit| format!("redis://:hunter2@{address}?connect_timeout={limit}");
    thread::spawn(move || {
        // Refuses whatever one client asks, then is gone.
        let (client, _) = server.accept().unwrap();
        let mut answers = client.try_clone().unwrap();
        let asked = BufReader::new(client).lines().map_while(Result::ok);
        for _ in asked.filter(|line| line.starts_with('*')) {
            let refusal = b"-WRONGPASS invalid username-password pair or user is disabled.\r\n";
            let _ = answers.write_all(refusal);
        }
    });
    for (limit, expected) in [("20s", 77), ("2s", 69)] {
        let run = scene.run(&["run", "it", "--url", &url(limit), "--", "echo", "ran"]);
        let (code, line) = refused(&run);
        assert_eq!(code, expected, "{line}");
        assert!(!line.contains("hunter2"), "{line}");
    }
    // U27: a run that waits for the lock waits for the store too.
    let began = Instant::now();
    let waits = scene.run(&["run", "it", "--wait", "2s", "--url", &url("2s"), "--", "true"]);
    assert_eq!(waits.code, Some(69), "{}", waits.err);
    assert!(waits.err.contains("still trying") && began.elapsed() >= Duration::from_secs(1));
    // A session on ZooKeeper is part of that.
    let began = Instant::now();
    let url = format!("zookeeper://{address}");
    let waits = scene.run(&["run", "it", "--wait", "2s", "--url", &url, "--", "true"]);
    assert_eq!(waits.code, Some(69), "{}", waits.err);
    assert!(waits.err.contains("still trying") && began.elapsed() >= Duration::from_secs(1));
}

#[test]
fn without_a_url_the_locks_are_this_users() {
    let scene = Scene::new();
    let state = scene.path("a state");
    let fencelock = |arguments: &[&str]| {
        let mut command: Command = scene.fencelock(arguments);
        command.env_remove("FENCELOCK_URL").env("XDG_STATE_HOME", &state);
        Running::start(&mut command).finish()
    };
    let run = fencelock(&["run", "it", "--", "true"]);
    assert_eq!(run.code, Some(0));
    assert!(
        run.err.contains("no --url and no FENCELOCK_URL") && run.err.contains("locks.db"),
        "{}",
        run.err
    );
    let quiet = fencelock(&["run", "-q", "it", "--", "true"]);
    assert_eq!((quiet.code, &*quiet.err), (Some(0), ""));
    let job = fencelock(&["job", "it", "--every", "1h", "--", "true"]);
    let (code, line) = refused(&job);
    assert_eq!(code, 78, "{line}");
    assert!(line.contains("no store is named"), "{line}");
    assert!(fencelock(&["ls"]).out.contains("\nit "));
    let mode = |name: &str| state.join(name).metadata().unwrap().permissions().mode() & 0o777;
    assert!(state.join("fencelock/locks.db").is_file());
    assert_eq!(mode("fencelock"), 0o700);
    let flag = fencelock(&["inspect", "it", "-o", "json", "--url", &scene.url()]);
    assert!(flag.out.contains("\"last_token\":0"), "{}", flag.out);
}

/// A script or a unit that has lost the value must not lock a file of its own beside the others' server.
#[test]
fn an_empty_url_is_refused() {
    let scene = Scene::new();
    for words in
        [&["run", "it", "--", "true"][..], &["ls"], &["job", "it", "--every", "1h", "--", "true"]]
    {
        let run = Running::start(scene.fencelock(words).env("FENCELOCK_URL", "")).finish();
        let (code, line) = refused(&run);
        assert_eq!(code, 78, "{line}");
        assert!(line.contains("FENCELOCK_URL is empty"), "{line}");
    }
}

#[test]
fn without_a_home_the_temporary_directory_does_if_it_is_safe() {
    let scene = Scene::new();
    let fencelock = || {
        let mut command = scene.fencelock(&["ls"]);
        command.env_remove("FENCELOCK_URL").env("XDG_STATE_HOME", "/dev/null/nowhere");
        Running::start(command.env("TMPDIR", scene.path(""))).finish()
    };
    assert_eq!(fencelock().code, Some(0));
    let directory = scene.path(&format!("fencelock-{}", rustix::process::geteuid().as_raw()));
    assert!(directory.join("locks.db").is_file());
    std::fs::set_permissions(&directory, PermissionsExt::from_mode(0o777)).unwrap();
    let run = fencelock();
    let (code, line) = refused(&run);
    assert_eq!(code, 78, "{line}");
    assert!(line.contains("is not a directory of yours alone"), "{line}");
}
