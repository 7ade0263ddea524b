use std::sync::Arc;
use std::time::Duration;

use super::{Sim, SimNode, Stuck};
use fencelock::port::Runtime;
use parking_lot::Mutex;

const SECOND: Duration = Duration::from_secs(1);

type Diary = Arc<Mutex<Vec<String>>>;

/// Spawns a task that writes its name down once in a local second, `times` times.
fn clerk(node: &Arc<SimNode>, diary: &Diary, name: &'static str, times: usize) {
    let (runtime, diary) = (Arc::clone(node), Arc::clone(diary));
    node.spawn(Box::pin(async move {
        for _ in 0..times {
            runtime.sleep_until(runtime.now() + SECOND).await;
            diary.lock().push(name.to_owned());
        }
    }));
}

fn story(seed: u64) -> (Vec<String>, u64) {
    let sim = Sim::new(seed);
    let diary = Diary::default();
    let node = sim.node(0);
    for name in ["a", "b", "c", "d"] {
        clerk(&node, &diary, name, 8);
    }
    sim.run_until_idle().unwrap();
    let lines = diary.lock().clone();
    (lines, sim.trace())
}

#[test]
fn one_seed_is_one_trace() {
    assert_eq!(story(1), story(1));
    assert_ne!(story(1), story(2));
}

#[test]
fn clocks_drift_and_timers_go_by_them() {
    let sim = Sim::new(3);
    let diary = Diary::default();
    clerk(&sim.node(10_000), &diary, "fast", 100);
    clerk(&sim.node(-10_000), &diary, "slow", 100);
    sim.run_for(SECOND * 99 + SECOND / 20).unwrap();
    let (lines, slow) = {
        let lines = diary.lock();
        (lines.len(), lines.iter().filter(|line| *line == "slow").count())
    };
    assert_eq!((slow, lines - slow), (98, 100));
    assert_eq!(sim.elapsed(), SECOND * 99 + SECOND / 20);
}

#[test]
fn a_paused_node_does_nothing_while_its_clock_runs() {
    let sim = Sim::new(4);
    let diary = Diary::default();
    let node = sim.node(0);
    clerk(&node, &diary, "sleeper", 2);
    node.pause();
    let before = node.now();
    sim.run_for(SECOND * 10).unwrap();
    assert!(diary.lock().is_empty());
    assert_eq!(node.now().since(before), SECOND * 10);
    node.resume();
    // The first sleep begins only now: its moment is counted from the first look at the clock.
    sim.run_for(SECOND * 3 / 2).unwrap();
    assert_eq!(diary.lock().len(), 1);
}

#[test]
fn a_crash_drops_tasks_and_timers_and_what_their_drop_spawns() {
    struct Last(Arc<SimNode>, Diary);
    impl Drop for Last {
        fn drop(&mut self) {
            self.1.lock().push("dropped".to_owned());
            let diary = Arc::clone(&self.1);
            self.0.spawn(Box::pin(async move { diary.lock().push("ran".to_owned()) }));
        }
    }
    let sim = Sim::new(5);
    let diary = Diary::default();
    let node = sim.node(0);
    let (last, runtime) = (Last(Arc::clone(&node), Arc::clone(&diary)), Arc::clone(&node));
    node.spawn(Box::pin(async move {
        runtime.sleep_until(runtime.now() + SECOND).await;
        drop(last);
    }));
    sim.run_for(SECOND / 2).unwrap();
    assert_eq!((node.tasks(), node.timers()), (1, 1));
    node.crash();
    sim.run_until_idle().unwrap();
    assert_eq!(*diary.lock(), ["dropped"]);
    assert_eq!((node.tasks(), node.timers()), (0, 0));
}

#[test]
fn a_busy_loop_and_a_deadlock_are_told() {
    let sim = Sim::new(6);
    let node = sim.node(0);
    node.spawn(Box::pin(std::future::poll_fn(|context| {
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })));
    assert!(matches!(sim.run_for(SECOND), Err(Stuck::Busy { .. })));
    let sim = Sim::new(7);
    assert!(matches!(sim.block_on(std::future::pending::<()>()), Err(Stuck::Idle { .. })));
}
