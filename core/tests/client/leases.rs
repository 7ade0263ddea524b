//! How leases end, in virtual time.
#![cfg(feature = "test-hooks")]
#![allow(missing_docs)]

use crate::machine;

use std::time::Duration;

use fencelock::driver::memory::Memory;
use fencelock::{Code, Released};

use self::machine::{Machine, live};

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_fixed_lease_ends_and_tells() {
    live(async |machine: Machine| {
        let memory = Memory::new();
        let a = machine.client(&memory).await;
        let guard = a.lock("x").ttl(50 * MS).renew(false).acquire().await.unwrap();
        machine.within(500 * MS, guard.lost()).await.expect("lost is told");
        assert_eq!(guard.check().unwrap_err().code(), Code::Lost);
        assert_eq!(guard.release().await, Released::AlreadyLost);
    });
}

#[test]
fn a_renewed_lease_outlives_its_ttl() {
    live(async |machine: Machine| {
        let memory = Memory::new();
        let a = machine.client(&memory).await;
        let guard = a.lock("x").ttl(60 * MS).acquire().await.unwrap();
        machine.sleep(300 * MS).await;
        assert!(guard.is_held());
        assert_eq!(guard.release().await, Released::Released);
        let bounded = a.lock("x").ttl(60 * MS).max_hold(150 * MS).acquire().await.unwrap();
        machine.within(Duration::from_secs(1), bounded.lost()).await.expect("max_hold ends it");
    });
}

#[test]
fn a_claim_ends_with_its_guard() {
    live(async |machine: Machine| {
        let memory = Memory::new();
        let a = machine.client(&memory).await;
        let guard = a.lock("x").ttl(50 * MS).acquire().await.unwrap();
        let claim = guard.claim();
        assert!(claim.is_held());
        assert_eq!(guard.release().await, Released::Released);
        assert!(!claim.is_held());
        assert_eq!(claim.remaining(), Duration::ZERO);
        assert_eq!(claim.check().unwrap_err().code(), Code::NotHeld);
        let told = machine.within(100 * MS, claim.lost()).await;
        assert!(told.is_none(), "what was given back cannot be lost");
    });
}
