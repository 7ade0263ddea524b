//! Clients that want one lock of a quorum at once, with a node that fails.
#![cfg(feature = "test-hooks")]
#![allow(missing_docs)]

use crate::machine;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fencelock_sim::Fault;

use self::machine::live;
use self::machine::nodes::Nodes;

const MS: Duration = Duration::from_millis(1);

/// Six clients that try for one lock, while one node of five fails like this: how many tries were errors. Every wait ends with its lock.
fn failed_tries(fault: Fault) -> u32 {
    let failed = AtomicU32::new(0);
    live(async |machine| {
        let nodes = Nodes::new(&machine, 5);
        let mut clients = Vec::new();
        for _ in 0..6 {
            clients.push(nodes.client().await);
        }
        // Their ways differ, so that votes are split.
        (0..4).for_each(|node| nodes.meet([node], Fault::Late(MS * (node as u32 + 1))));
        nodes.meet([4], fault);
        let tries = clients.into_iter().zip(1..).map(|(client, number)| {
            let own = machine.clone();
            machine.start(async move {
                let mut failed = 0;
                for _ in 0..100 {
                    own.sleep(MS * number * 7 / 10).await;
                    match client.lock("x").try_acquire().await {
                        Ok(Some(guard)) => guard.release().await.check().unwrap(),
                        Ok(None) => {}
                        Err(_) => failed += 1,
                    }
                }
                let guard = client.lock("x").acquire_within(Duration::from_secs(10)).await;
                guard.expect("it is free in the end").release().await.check().unwrap();
                failed
            })
        });
        for tries in tries.collect::<Vec<_>>() {
            failed.fetch_add(tries.await.unwrap(), Ordering::Relaxed);
        }
    });
    failed.into_inner()
}

#[test]
fn a_node_that_fails_is_not_felt_by_those_who_contend() {
    for fault in [Fault::Refused, Fault::RequestLost] {
        assert_eq!(failed_tries(fault), 0, "of 4,800 tries, {fault:?}");
    }
}
