//! Five masters and one key: with all of them up, and with one that stands still.

use std::time::Duration;

use super::{Bench, milliseconds, number};
use crate::Result;
use crate::contender::{Contender, race};
use crate::report::Bound::AtMost;
use crate::report::Sheet;
use crate::server::Server;

const MASTERS: usize = 5;
/// The peers that have a lock over several masters.
const PEERS: [&str; 4] = ["rslock", "redsync", "node-redlock", "redis-semaphore"];
/// Nodes that have just started keep out for the longest lease: long enough for a course, and short enough to wait for.
const LEASE: &str = "ttl=5s&max_ttl=5s";

pub(super) async fn run(bench: &mut Bench) -> Result<Vec<Sheet>> {
    let title = "redlock: five masters, one key; all up, and one stopped (SIGSTOP)";
    let columns = ["acquire p50 µs", "pair p50 µs", "pairs/s", "pairs/s, one stopped", "slower by"];
    let mut sheet = Sheet::new(title, "fencelock", &columns);
    let mut contenders = vec![Contender::built_in("fencelock")?];
    contenders.extend(bench.peers(&PEERS));
    let start = |_| Server::start(&bench.room);
    let masters = (0..MASTERS).map(start).collect::<Result<Vec<_>>>()?;
    let places: Vec<String> = masters.iter().map(Server::address).collect();
    let places = places.join(",");
    let pairs = bench.of(10_000, 200);
    let length = Duration::from_millis(bench.of(5_000, 300));
    let measure = async |bench: &mut Bench, contender: &Contender| {
        let mut words = bench.words();
        words.retain(|word| word.starts_with("key="));
        words.push(format!("url=redlock://{places}?{LEASE}"));
        words.extend([format!("servers={places}"), format!("pairs={pairs}"), "keys=1".to_owned()]);
        words.push(milliseconds(length.as_millis() as u64));
        let lasts = length + Duration::from_mins(1);
        let entry = || vec![contender.entry("pair", words.clone())];
        let (pair, ()) = race(entry(), lasts, || Ok(()), || Ok(())).await?;
        let rate = async |stopped: bool| {
            let last = &masters[MASTERS - 1];
            let go = || if stopped { last.freeze(true) } else { Ok(()) };
            let done = || last.freeze(false);
            let entry = vec![contender.entry("parallel", words.clone())];
            let raced = race(entry, lasts, go, done).await;
            // Also after a failure the others are to meet five masters.
            last.freeze(false)?;
            number(&raced?.0[0], "pairs_per_s")
        };
        let (all, four) = (rate(false).await?, rate(true).await?);
        let figure = |name| number(&pair[0], name);
        Ok(vec![figure("acquire_p50_us")?, figure("p50_us")?, all, four, all / four])
    };
    bench.rounds(&mut sheet, contenders, measure).await?;
    let slower = sheet.figure("fencelock", 4);
    sheet.target("a pair with one master stopped / with all up", slower, AtMost(1.3));
    let ratio = sheet.figure("fencelock", 0) / sheet.quickest_peer(0);
    sheet.target("acquire p50 / the quickest peer's", ratio, AtMost(0.85));
    Ok(vec![sheet])
}
