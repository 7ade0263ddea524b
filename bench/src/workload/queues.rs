//! The stores with entry queues, each beside the clients that people use there: alone, and with 2, 64 and 256 tasks that want
//! one key.

use std::time::Duration;

use super::{Bench, all, contending, evenness, number, turn_file};
use crate::Result;
use crate::contender::{Contender, race};
use crate::queue_server::{QueueServer, Store};
use crate::report::Bound::{AtLeast, AtMost};
use crate::report::Sheet;

const TASKS: [u64; 3] = [2, 64, 256];
/// etcd's floor: it does not wait, so it has no part in hand-overs.
const BARE: &str = "etcd-bare";

pub(super) async fn run(bench: &mut Bench) -> Result<Vec<Sheet>> {
    let mut sheets = Vec::new();
    for store in [Store::Etcd, Store::Zookeeper] {
        let server = QueueServer::start(store, &bench.room)?;
        sheets.push(pair(bench, store, &server).await?);
        for tasks in TASKS {
            sheets.push(handover(bench, store, &server, tasks).await?);
        }
    }
    Ok(sheets)
}

/// Us, and who takes part on this store.
fn contenders(bench: &Bench, store: Store) -> Result<Vec<Contender>> {
    let mut contenders = vec![Contender::built_in("fencelock")?];
    let peers: &[&str] = match store {
        Store::Etcd => &[BARE, "clientv3", "jetcd"],
        Store::Zookeeper => &["go-zookeeper", "curator", "kazoo"],
    };
    if store == Store::Zookeeper {
        contenders.push(Contender::built_in("zookeeper-client")?);
    }
    contenders.extend(bench.peers(peers));
    Ok(contenders)
}

/// The words of a course on this store, with a key nobody has used.
fn words(bench: &mut Bench, store: Store, server: &QueueServer) -> Vec<String> {
    bench.runs += 1;
    let address = server.address();
    vec![
        format!("key=bench-{}", bench.runs),
        format!("url={}://{address}", store.name()),
        format!("server={address}"),
    ]
}

async fn pair(bench: &mut Bench, store: Store, server: &QueueServer) -> Result<Sheet> {
    let title = format!("queues: {}, acquire and release, nobody else around", store.name());
    let mut sheet = Sheet::new(&title, "fencelock", &["p50 µs", "p99 µs", "requests"]);
    let pairs = bench.of(3_000, 100);
    let contenders = contenders(bench, store)?;
    let measure = async |bench: &mut Bench, contender: &Contender| {
        let mut words = words(bench, store, server);
        words.push(format!("pairs={pairs}"));
        let entries = vec![contender.entry("pair", words)];
        let mut before = 0;
        let go = || server.requests().map(|requests| before = requests);
        let (figures, after) =
            race(entries, Duration::from_mins(2), go, || server.requests()).await?;
        let requests = (after - before) as f64 / pairs as f64;
        Ok(vec![number(&figures[0], "p50_us")?, number(&figures[0], "p99_us")?, requests])
    };
    bench.rounds(&mut sheet, contenders, measure).await?;
    let ours = sheet.figure("fencelock", 0);
    match store {
        Store::Etcd => {
            let ratio = ours / sheet.figure(BARE, 0);
            sheet.target("etcd, p50 / a bare transaction and removal", ratio, AtMost(1.05));
        }
        Store::Zookeeper => {
            let ratio = ours / sheet.quickest_peer(0);
            sheet.target("zookeeper, p50 / the quickest peer's", ratio, AtMost(1.05));
            let ratio = sheet.figure("curator", 0) / ours;
            sheet.target("zookeeper, pairs / Curator's", ratio, AtLeast(1.5));
        }
    }
    Ok(sheet)
}

async fn handover(
    bench: &mut Bench,
    store: Store,
    server: &QueueServer,
    tasks: u64,
) -> Result<Sheet> {
    let title = format!("queues: {}, {tasks} tasks of one process, one key", store.name());
    let columns = ["hand-overs/s", "requests each", "min/max"];
    let mut sheet = Sheet::new(&title, "fencelock local=0", &columns);
    let mut contenders = contenders(bench, store)?;
    contenders.retain(|contender| contender.name != BARE);
    let local = contenders[0].clone().with("local=0");
    contenders.insert(0, local);
    let length = Duration::from_millis(bench.of(5_000, 200));
    let measure = async |bench: &mut Bench, contender: &Contender| {
        let turn = turn_file(&bench.room)?;
        let words = words(bench, store, server);
        let words = contending(&words, length, Duration::ZERO, tasks, 0, &turn);
        let mut before = 0;
        let go = || server.requests().map(|requests| before = requests);
        let entries = vec![contender.entry("contend", words)];
        let (figures, after) = race(entries, length, go, || server.requests()).await?;
        let handed = number(&figures[0], "handed")?;
        let acquired: f64 = all(&figures, "acquired").iter().sum();
        let requests = (after - before) as f64 / acquired;
        Ok(vec![handed / length.as_secs_f64(), requests, evenness(&figures)])
    };
    bench.rounds(&mut sheet, contenders, measure).await?;
    let ours = sheet.figure("fencelock local=0", 0);
    match store {
        Store::Etcd => {
            let ratio = ours / sheet.figure("clientv3", 0);
            sheet.target("etcd, hand-overs / clientv3's", ratio, AtLeast(20.0));
        }
        Store::Zookeeper => {
            let ratio = ours / sheet.figure("go-zookeeper", 0);
            sheet.target("zookeeper, hand-overs / go-zookeeper's", ratio, AtLeast(1.3));
            let requests = sheet.figure("fencelock local=0", 1);
            // Heartbeats are requests too.
            sheet.target("zookeeper, requests per contended acquisition", requests, AtMost(3.05));
        }
    }
    Ok(sheet)
}
