//! Transactions of the user's own on a real ZooKeeper, which are refused when the hold has ended.

use std::path::Path;
use std::process::Command;

use fencelock::Guard;
use fencelock_peers::Family;
use fencelock_tests::ended;
use fencelock_tests::other_library::installed;
use fencelock_tests::session_store::clients;
use fencelock_tests::zookeeper::ZookeeperServer;
use zookeeper_client::{Acls, Client as Admin, CreateMode, Error};

/// The manual with the example.
const MANUAL: &str = include_str!("../../../../docs/reference/zookeeper.md");

/// The only entry of this kind that lies at a path.
async fn entry(admin: &Admin, path: &str) -> String {
    let names = admin.list_children(path).await.unwrap();
    let [name] = &names[..] else { panic!("{names:?}") };
    format!("{path}/{name}")
}

/// Writes in a transaction that checks the entry. Whether it was carried out.
async fn writes_under(admin: &Admin, entry: &str) -> bool {
    let mut writer = admin.new_check_writer(entry, None).unwrap();
    writer.add_set_data("/stock", b"7", None).unwrap();
    writer.commit().await.is_ok()
}

async fn stock(admin: &Admin) {
    let stays = CreateMode::Persistent.with_acls(Acls::anyone_all());
    admin.create("/stock", b"9", &stays).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_of_the_users_own_checks_the_entry() {
    let server = ZookeeperServer::start();
    let admin = server.admin().await;
    stock(&admin).await;
    let all = clients(&server, "shop", 2).await;
    let first = all[0].lock("orders/42").acquire().await.unwrap();
    let old = entry(&admin, "/shop/orders/42").await;
    assert!(writes_under(&admin, &old).await);
    first.release().await.check().unwrap();
    assert!(!writes_under(&admin, &old).await, "the hold has ended");
    let second = all[1].lock("orders/42").acquire().await.unwrap();
    assert!(!writes_under(&admin, &old).await, "somebody else holds");
    assert!(writes_under(&admin, &entry(&admin, "/shop/orders/42").await).await);
    second.release().await.check().unwrap();

    let _permit = all[0].semaphore("pool", 2).acquire().await.unwrap();
    assert!(writes_under(&admin, &entry(&admin, "/shop/pool/leases").await).await);
}

/// The manual's example with kazoo, as it stands there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_manuals_example_is_refused_when_the_hold_has_ended() {
    let actor = Path::new(env!("CARGO_BIN_EXE_actor"));
    let Some(program) = installed(actor, Family::Python, "kazoo") else { return };
    let kazoos_python = program.command().get_program().to_owned();
    let server = ZookeeperServer::start();
    stock(&server.admin().await).await;
    // Python starts beside it, which takes seconds of a busy machine: the longest session the server gives.
    let url = format!("{}?ttl=4s", server.url("shop"));
    let client = fencelock::connect(&url).await.unwrap();
    let other = fencelock::connect(&url).await.unwrap();
    let (_, example) = MANUAL.split_once("```text\nimport os\n").expect("it is there");
    let (example, _) = example.split_once("```").expect("it ends");
    let address = server.url("").authority().to_owned();
    let script = format!("import os\n{example}").replace("127.0.0.1:2181", &address);
    let run = |guard: &Guard| {
        let mut python = Command::new(&kazoos_python);
        python.args(["-c", &script]).env("FENCELOCK_LOCK", guard.name());
        let ended = ended::output(python.env("FENCELOCK_TOKEN", guard.token().to_string()));
        String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).trim().to_owned()
    };
    let guard = client.lock("orders/42").acquire().await.unwrap();
    assert_eq!(tokio::task::block_in_place(|| run(&guard)), "written");
    let admin = server.admin().await;
    let entry = entry(&admin, "/shop/orders/42").await;
    admin.delete(&entry, None).await.unwrap();
    let next = other.lock("orders/42").acquire().await.unwrap();
    assert_eq!(tokio::task::block_in_place(|| run(&guard)), "refused");
    next.release().await.check().unwrap();
    // The server removes the node of a lock that nobody has, now and then.
    let removed = server.admin().await.delete("/shop/orders/42", None).await;
    assert!(matches!(removed, Ok(()) | Err(Error::NoNode)), "{removed:?}");
    let ended = tokio::task::block_in_place(|| run(&guard));
    assert!(ended.ends_with("NoNodeError"), "{ended}");
}
