//! `inspect` and `ls`, for people and for programs.

use crate::scene;

use std::time::{Duration, SystemTime};

use fencelock::driver::{mysql, postgres};
use fencelock_tests::ended;
use scene::Scene;
use serde_json::{Value, json};

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn a_lock_nobody_knows_is_free() {
    let scene = Scene::new();
    let shown = scene.run(&["inspect", "it"]);
    assert_eq!(
        (shown.code, shown.out.as_str()),
        (Some(0), "it is free; the store knows nothing of it\n")
    );
    let free = json!({
        "name": "it", "kind": "mutex", "state": "free", "last_token": 0,
        "holder": null, "holders": [], "waiters": [],
    });
    assert_eq!(scene.inspect("it"), free);
    assert_eq!(scene.run(&["ls"]).out, "no locks\n");
    assert_eq!(scene.run(&["ls", "-o", "json"]).out, "[]\n");
}

#[test]
fn a_held_lock_with_waiters() {
    let scene = Scene::new();
    let options = ["--info", r#"{"job":"7","team":"ops"}"#];
    let (holder, token) = scene.hold(&options, "echo $FENCELOCK_TOKEN; cat");
    let waiters = [1, 2, 3].map(|count| {
        let waiter = scene.start(&["run", "it", "--", "true"]);
        scene.until_waiters(count);
        waiter
    });

    let view = scene.inspect("it");
    let fields = ["holder", "holders", "kind", "last_token", "name", "state", "waiters"];
    assert_eq!(keys(&view), fields);
    assert_eq!(view["holders"], json!([view["holder"]]));
    let shown = &view["holder"];
    let who = ["app", "host", "info", "language", "pid"];
    let mut expected = [&["held_ms", "left_ms", "mode", "since", "token"][..], &who].concat();
    expected.sort_unstable();
    assert_eq!(keys(shown), expected);
    assert_eq!(shown["token"].to_string(), token);
    assert_eq!(shown["mode"], "exclusive");
    assert_eq!((&shown["app"], &shown["language"]), (&json!("sh"), &json!("shell")));
    assert_eq!(shown["pid"], json!(holder.pid()));
    assert_eq!(shown["info"], json!({"job": "7", "team": "ops"}));
    assert!((1..=30_000).contains(&shown["left_ms"].as_u64().unwrap()));
    let mut expected = [&["mode", "position", "waiting_ms"][..], &who].concat();
    expected.sort_unstable();
    assert_eq!(keys(&view["waiters"][0]), expected);
    let places: Vec<_> = view["waiters"].as_array().unwrap().iter().collect();
    let places: Vec<_> =
        places.iter().map(|waiter| (&waiter["position"], &waiter["pid"])).collect();
    let expected = [1, 2, 3].map(|place| (json!(place), json!(waiters[place - 1].pid())));
    assert_eq!(places, expected.each_ref().map(|(place, pid)| (place, pid)));

    let human = scene.run(&["inspect", "it"]).out;
    let lines: Vec<&str> = human.lines().collect();
    let host = shown["host"].as_str().unwrap();
    assert_eq!(lines[0], "it is held");
    assert_eq!(lines[1], format!("  holder   sh on {host}, pid {} (shell)", holder.pid()));
    assert_eq!(lines[2], r#"  info     {"job":"7","team":"ops"}"#);
    assert!(lines[3].starts_with("  since    20") && lines[3].ends_with(" ago)"), "{}", lines[3]);
    assert_eq!(lines[4], format!("  token    {token}"));
    assert!(lines[5].starts_with("  lease    ") && lines[5].ends_with("s left"), "{}", lines[5]);
    assert_eq!(lines[6], "  waiters  3");
    for (place, waiter) in (1..).zip(&waiters) {
        let line = lines[6 + place];
        assert!(line.starts_with(&format!("           {place}. ")), "{line}");
        assert!(line.ends_with(&format!("true on {host}, pid {} (shell)", waiter.pid())), "{line}");
    }
    assert_eq!(lines.len(), 10);

    // The list says the same.
    let listed = scene.run(&["ls"]).out;
    let who = |pid: u32| format!("true on {host}, pid {pid} (shell)");
    let line = waiters.each_ref().map(|waiter| who(waiter.pid())).join("; ");
    assert!(listed.ends_with(&format!("  3: {line}\n")), "{listed}");
    let last = scene.start(&["run", "it", "--", "true"]);
    scene.until_waiters(4);
    let listed = scene.run(&["ls"]).out;
    assert!(listed.ends_with(&format!("  4: {line}; …\n")), "{listed}");
    drop(last);
}

#[test]
fn since_is_the_moment_of_the_grant() {
    let scene = Scene::new();
    let before = SystemTime::now();
    let (_holder, _) = scene.hold(&[], "echo held; cat");
    let after = SystemTime::now();
    let view = scene.inspect("it");
    let shown = view["holder"]["since"].as_str().unwrap();
    let since = humantime::parse_rfc3339(shown).unwrap();
    // It is rounded, and told from the time that went by until the store answered: late by what the answer took.
    let (early, late) = (Duration::from_millis(1), scene::soon(Duration::from_millis(500)));
    assert!(since >= before - early && since <= after + late, "{shown}");
    let human = scene.run(&["inspect", "it"]).out;
    let line = human.lines().find(|line| line.starts_with("  since    ")).expect("it is told");
    let told = humantime::parse_rfc3339(line.split_whitespace().nth(1).unwrap()).unwrap();
    assert!(told >= before - early && told <= after + late, "{human}");
    let listed = scene.run(&["ls"]).out;
    let (head, row) = listed.split_once('\n').unwrap();
    let listed = row[head.find("SINCE").unwrap()..].split(' ').next().unwrap();
    let listed = humantime::parse_rfc3339(listed).unwrap();
    assert!(listed >= before - Duration::from_secs(1) && listed <= after + late, "{row}");
}

/// The fields shown of locks, without those that change from one look to the next.
fn settled(mut lock: Value) -> Value {
    fn settle(value: &mut Value) {
        match value {
            Value::Array(values) => values.iter_mut().for_each(settle),
            Value::Object(fields) => {
                for (name, value) in fields {
                    match name.as_str() {
                        "held_ms" | "left_ms" | "waiting_ms" if value.is_u64() => {
                            *value = json!("some");
                        }
                        "since" if value.is_string() => {
                            *value = json!("then");
                        }
                        _ => settle(value),
                    }
                }
            }
            _ => {}
        }
    }
    settle(&mut lock);
    lock
}

#[test]
fn the_list_shows_programs_what_inspect_shows() {
    let scene = Scene::new();
    scene.run(&["run", "free", "--", "true"]);
    let (_holder, _) = scene.hold(&["--info", "nightly"], "echo held; cat");
    let _waiters = [1, 2].map(|count| {
        let waiter = scene.start(&["run", "it", "--", "true"]);
        scene.until_waiters(count);
        waiter
    });
    let listed: Value = serde_json::from_str(&scene.run(&["ls", "-o", "json"]).out).unwrap();
    let inspected = ["free", "it"].map(|name| settled(scene.inspect(name)));
    assert_eq!(settled(listed), json!(inspected));
}

#[test]
fn a_lock_is_broken() {
    let scene = Scene::new();
    let free = scene.run(&["break", "it"]);
    assert_eq!((free.code, free.out.as_str()), (Some(79), ""), "{}", free.err);
    let (holder, token) = scene.hold(&["--ttl", "3s"], "echo $FENCELOCK_TOKEN; exec sleep 60");
    let other = scene.run(&["break", "it", "--token", "1"]);
    assert_eq!(other.code, Some(79), "{}", other.err);
    let broken = scene.run(&["break", "it", "--reason", "it hangs"]);
    assert_eq!(broken.code, Some(0), "{}", broken.err);
    assert!(broken.out.starts_with("it is broken: sh on "), "{}", broken.out);
    assert!(broken.out.ends_with(&format!(" has lost token {token}\n")), "{}", broken.out);
    assert_eq!(scene.inspect("it")["state"], "free");
    assert_eq!(holder.finish().code, Some(79));
}

#[test]
fn the_list_has_every_lock_that_begins_so() {
    let scene = Scene::new();
    scene.run(&["run", "orders:1", "--", "true"]);
    scene.run(&["run", "other", "--", "true"]);
    let held = ["run", "orders:22", "--", "sh", "-c", "echo $FENCELOCK_TOKEN; cat"];
    let held = scene.start(&held);
    let token = held.line();

    let all: Value = serde_json::from_str(&scene.run(&["ls", "-o", "json"]).out).unwrap();
    let names: Vec<&Value> = all.as_array().unwrap().iter().map(|lock| &lock["name"]).collect();
    assert_eq!(names, ["orders:1", "orders:22", "other"]);

    let table = scene.run(&["ls", "orders"]).out;
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 3, "{table}");
    assert!(lines[0].starts_with("NAME       STATE  HOLDER"), "{table}");
    assert!(lines[1].starts_with("orders:1   free   -"), "{table}");
    assert!(lines[2].starts_with("orders:22  held   sh on "), "{table}");
    let column = |name: &str| lines[0].find(name).unwrap();
    assert_eq!(lines[2][column("TOKEN")..].split(' ').next(), Some(token.as_str()));
    assert_eq!(lines[2].len(), column("WAITERS") + 1);
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    use std::process::Command;
    let scene = Scene::new();
    let script = "\"$FENCELOCK\" completions bash | head -n 1 > /dev/null; echo ${PIPESTATUS[0]}";
    let shell = ended::output(
        Command::new("bash")
            .args(["-c", script])
            .env("FENCELOCK", env!("CARGO_BIN_EXE_fencelock"))
            .env("FENCELOCK_URL", scene.url()),
    );
    assert_eq!(String::from_utf8_lossy(&shell.stdout), "0\n");
    assert_eq!(String::from_utf8_lossy(&shell.stderr), "");
}

#[test]
fn the_tables_of_a_database_are_printed() {
    let scene = Scene::new();
    for (dialect, schema) in [
        ("mysql", mysql::schema as fn(&str) -> fencelock::Result<String>),
        ("postgres", postgres::schema),
    ] {
        let words = ["sql", "schema", "--dialect", dialect];
        let shown = scene.run(&words);
        assert_eq!((shown.code, shown.out), (Some(0), schema("fencelock").unwrap()));
        let shown = scene.run(&[&words[..], &["--table", "app_locks"]].concat());
        assert_eq!((shown.code, shown.out), (Some(0), schema("app_locks").unwrap()));
        let refused = scene.run(&[&words[..], &["--table", "App; DROP"]].concat());
        assert_eq!((refused.code, refused.out.as_str()), (Some(78), ""));
        assert!(refused.err.contains("a to z"), "{}", refused.err);
    }
    assert_eq!(scene.run(&["sql", "schema", "--dialect", "oracle"]).code, Some(64));
}

/// A name may have them; the terminal of whoever looks gets none.
#[test]
fn what_steers_a_terminal_is_written_out() {
    let scene = Scene::new();
    let name = "a\u{202e}b\u{2066}c\u{200b}d\u{2028}e";
    let written = r"a\u{202e}b\u{2066}c\u{200b}d\u{2028}e";
    let info = "--info=x\u{202d}y";
    let hold = ["run", name, info, "--", "sh", "-c", "echo held; cat"];
    let holder = scene.start(&hold);
    assert_eq!(holder.line(), "held");
    let plain = |text: &str| assert!(text.is_ascii(), "{text:?}");

    let shown = scene.run(&["inspect", name]).out;
    plain(&shown);
    assert!(shown.starts_with(&format!("{written} is held\n")), "{shown}");
    assert!(shown.contains(r"x\u{202d}y"), "{shown}");
    let listed = scene.run(&["ls"]).out;
    plain(&listed);
    assert!(listed.lines().nth(1).unwrap().starts_with(written), "{listed}");
    let refused = scene.run(&["run", name, "--no-wait", "--", "true"]);
    plain(&refused.err);
    assert!(refused.err.contains(written), "{}", refused.err);

    // As data it is what it is.
    let exact = scene.run(&["ls", "-o", "json"]).out;
    plain(&exact);
    let exact: Value = serde_json::from_str(&exact).unwrap();
    assert_eq!(
        (&exact[0]["name"], &exact[0]["holder"]["info"]),
        (&json!(name), &json!("x\u{202d}y"))
    );
    assert_eq!(scene.inspect(name)["name"], name);
}

#[test]
fn every_verb_has_a_page_in_the_manual() {
    let scene = Scene::new();
    let folder = tempfile::tempdir().unwrap();
    let written = scene.run(&["manual", folder.path().to_str().unwrap()]);
    assert_eq!((written.code, written.out.as_str(), written.err.as_str()), (Some(0), "", ""));
    let help = scene.run(&["--help"]).out;
    let verbs: Vec<&str> = verbs(&help).collect();
    assert!(verbs.contains(&"run") && !verbs.contains(&"manual"), "{help}");
    for verb in verbs {
        let page = folder.path().join(format!("fencelock-{verb}.1"));
        assert!(std::fs::read_to_string(page).unwrap().contains("fencelock\\-"), "{verb}");
    }
}

/// The verbs that a help lists.
fn verbs(help: &str) -> impl Iterator<Item = &str> {
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs = commands.map_while(|line| line.split_whitespace().next());
    verbs.filter(|verb| *verb != "help")
}

/// The words that scripts rely on, so that a change of them is seen in a diff. `FENCELOCK_WRITE=1` writes the list anew.
#[test]
fn the_words_of_every_verb_are_those_in_api_txt() {
    let (scene, mut listed) = (Scene::new(), String::new());
    list(&scene, &[], &mut listed);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/api.txt");
    if std::env::var_os("FENCELOCK_WRITE").is_some() {
        std::fs::write(file, &listed).unwrap();
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), listed);
}

/// Lists the words that the help of these verbs shows, and then those of the verbs below.
fn list(scene: &Scene, above: &[&str], listed: &mut String) {
    let help = scene.run(&[above, &["--help"]].concat()).out;
    // The meaning of a word stands further in, or behind some blanks.
    let is_word = |line: &&str| {
        let word = line.trim_start();
        line.starts_with("Usage: ")
            || word.starts_with(['-', '<', '[']) && line.len() - word.len() <= 6
    };
    for line in help.lines().filter(is_word) {
        let words = line.trim_start().split("  ").next().unwrap_or_default();
        listed.push_str(words);
        listed.push('\n');
    }
    for verb in verbs(&help) {
        list(scene, &[above, &[verb]].concat(), listed);
    }
}
