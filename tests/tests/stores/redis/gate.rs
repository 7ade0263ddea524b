//! The gate on a real Redis server: a write by an older token is refused by the write itself.

use fencelock::driver::redis::RedisGate;
use fencelock::{Code, Token};
use fencelock_tests::servers::RedisServer;
use redis::Commands;

const OLD: Token = Token::new(1_795_000_000_000_000);
const NEW: Token = Token::new(1_795_000_000_000_001);

async fn gate(server: &RedisServer) -> RedisGate {
    fencelock::connect_gate(server.url().as_str()).await.expect("the server takes clients")
}

#[tokio::test]
async fn older_tokens_are_refused_and_equal_ones_pass() {
    let server = RedisServer::start();
    let gate = gate(&server).await;
    let mut admin = server.admin();
    gate.set("stock {7}", OLD, "10").await.unwrap();
    assert_eq!(gate.increment("stock {7}", OLD, -1).await.unwrap(), 9);
    assert_eq!(gate.increment("stock {7}", NEW, -1).await.unwrap(), 8);
    let before: String = admin.get("stock {7}").unwrap();
    let refused = [
        gate.set("stock {7}", OLD, "99").await.unwrap_err(),
        gate.increment("stock {7}", OLD, 1).await.unwrap_err(),
        gate.delete("stock {7}", OLD).await.unwrap_err(),
    ];
    for error in refused {
        assert_eq!((error.code(), error.retryable()), (Code::Lost, false), "{error}");
        let fields = error.fields();
        assert_eq!((&*fields["resource"], &*fields["token"]), ("stock {7}", &*OLD.to_string()));
        assert_eq!(fields["newest"], NEW.to_string());
    }
    assert_eq!(before, admin.get::<_, String>("stock {7}").unwrap(), "nothing was written");
    assert_eq!(gate.newest("stock {7}").await.unwrap(), Some(NEW));
    assert_eq!(gate.newest("another").await.unwrap(), None);
    // The gate stays closed when the data is gone.
    assert!(gate.delete("stock {7}", NEW).await.unwrap());
    assert_eq!(gate.set("stock {7}", OLD, "1").await.unwrap_err().code(), Code::Lost);
    assert!(!admin.exists::<_, bool>("stock {7}").unwrap());
}

#[tokio::test]
async fn late_writers_among_many_change_nothing() {
    let server = RedisServer::start();
    let holders = (0..8_u64).map(|holder| {
        let url = server.url();
        tokio::spawn(async move {
            let gate = fencelock::connect_gate(url.as_str()).await.unwrap();
            let mut written = 0;
            for round in 0..50 {
                let token = Token::new(1 + round * 8 + holder);
                match gate.increment("x", token, 1).await {
                    Ok(_) => written += 1,
                    Err(error) => assert_eq!(error.code(), Code::Lost, "{error}"),
                }
            }
            written
        })
    });
    let mut written = 0;
    for holder in holders.collect::<Vec<_>>() {
        written += holder.await.unwrap();
    }
    assert_eq!(server.admin().get::<_, i64>("x").unwrap(), written);
    let gate = gate(&server).await;
    assert_eq!(gate.newest("x").await.unwrap(), Some(Token::new(400)));
}

#[tokio::test]
async fn scripts_of_ones_own_pass_the_same_gate() {
    let server = RedisServer::start();
    let gate = gate(&server).await;
    let mut admin = server.admin();
    let script = format!(
        "{}
        local refused = fencelock_gate(KEYS[2], ARGV[1])
        if refused then return refused end
        return redis.call('RPUSH', KEYS[1], ARGV[2])",
        RedisGate::LUA
    );
    let mut push = |token: Token| {
        let mut command = redis::cmd("EVAL");
        command.arg(&script).arg(2).arg("list").arg(RedisGate::key("list"));
        command.arg(token.get()).arg("item").query::<i64>(&mut admin)
    };
    assert_eq!(push(NEW).unwrap(), 1);
    assert_eq!(push(NEW).unwrap(), 2);
    let refused = push(OLD).unwrap_err();
    assert_eq!(refused.code(), Some("LOST"), "{refused}");
    assert_eq!(gate.newest("list").await.unwrap(), Some(NEW));
    // What lies there is no number.
    let wrong = gate.increment("list", NEW, 1).await.unwrap_err();
    assert_eq!(wrong.code(), Code::Conflict, "{wrong}");
}

#[test]
fn threads_pass_it_too() {
    let server = RedisServer::start();
    let gate = fencelock::blocking::RedisGate::connect(server.url().as_str()).unwrap();
    gate.set("x", NEW, "1").unwrap();
    assert_eq!(gate.increment("x", OLD, 1).unwrap_err().code(), Code::Lost);
    assert_eq!(gate.increment("x", NEW, 1).unwrap(), 2);
    assert!(gate.delete("x", NEW).unwrap());
    assert_eq!(gate.newest("x").unwrap(), Some(NEW));
}

#[tokio::test]
async fn a_gate_stands_on_a_redis_server() {
    let error = fencelock::connect_gate("redlock://a,b,c").await.unwrap_err();
    assert_eq!(error.code(), Code::Unsupported, "{error}");
    let error = fencelock::connect_gate("memory:").await.unwrap_err();
    assert_eq!(error.code(), Code::Unsupported);
}
