//! While the process forks, nothing of a SQLite file is open in it. A program of its own: this holds for the whole process.
#![cfg(all(feature = "sqlite", feature = "tokio", target_os = "linux"))]
#![allow(missing_docs)]

use std::fs;
use std::path::Path;

use fencelock::driver::sqlite::still;

fn open_in(folder: &Path) -> usize {
    let files = fs::read_dir("/proc/self/fd").expect("this is Linux").flatten();
    files
        .filter_map(|file| fs::read_link(file.path()).ok())
        .filter(|path| path.starts_with(folder))
        .count()
}

#[expect(clippy::disallowed_methods, reason = "the threads are real ones")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_open_in_a_fork_and_what_is_held_stays_held() {
    let folder = std::env::temp_dir().join(format!("fencelock-still-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let folder = fs::canonicalize(folder).unwrap();
    let url = format!("sqlite:{}", folder.join("locks.db").display());
    let (one, two) =
        (fencelock::connect(&url).await.unwrap(), fencelock::connect(&url).await.unwrap());
    let guard = one.lock("held").acquire().await.unwrap();
    // Somebody is always in the midst of a step.
    let busy = tokio::spawn({
        let client = two.clone();
        async move {
            loop {
                client.lock("busy").acquire().await.unwrap().release().await.check().unwrap();
            }
        }
    });
    for _ in 0..100 {
        tokio::task::yield_now().await;
        let stillness = still();
        assert_eq!(open_in(&folder), 0);
        drop(stillness);
        assert!(two.lock("held").try_acquire().await.unwrap().is_none());
        assert!(open_in(&folder) >= 3, "the file, its log, its index");
    }
    busy.abort();
    guard.release().await.check().unwrap();
    two.lock("held")
        .try_acquire()
        .await
        .unwrap()
        .expect("it is free")
        .release()
        .await
        .check()
        .unwrap();
    fs::remove_dir_all(folder).unwrap();
}
