//! Values of node locks: every form is read, what was read and is written again reads the same.

use berth::{
    device::{Lock, LockNeed, LockOwner},
    dialect::{LockForm, LockSpec, lock::parse},
    excerpt::{VALUE, excerpt},
};
use jiff::{SignedDuration, Timestamp};

/// A lock's value in any form.
pub fn run(data: &[u8]) {
    let Some(value) = super::text(data) else { return };
    match parse(value) {
        Lock::Free => panic!("a value is there, and the lock is free"),
        Lock::Malformed { value: kept } => assert_eq!(kept, excerpt(value, VALUE)),
        Lock::Held { owner: None, since } => written_again(LockForm::Bare, None, since),
        Lock::Held { owner: Some(owner), since } => {
            assert_eq!(LockOwner::parse(&owner.namespace, &owner.name).as_ref(), Some(&owner), "{value}");
            let form = if value.contains(',') { LockForm::Comma } else { LockForm::Underscore };
            written_again(form, Some(owner), since);
        }
    }
}

/// Locks are written with whole seconds, and by clocks that stand after 1970.
fn written_again(form: LockForm, owner: Option<LockOwner>, since: Timestamp) {
    let Ok(since) = Timestamp::from_second(since.as_second().max(0)) else { return };
    let spec = LockSpec {
        key: "lock".to_owned(),
        form,
        expiry: SignedDuration::from_mins(5),
        need: LockNeed::Always,
    };
    let unused = LockOwner { namespace: String::new(), name: String::new() };
    let value = spec.value(owner.as_ref().unwrap_or(&unused), since);
    assert_eq!(parse(&value), Lock::Held { owner, since }, "{value}");
}

/// One of each form, and of what is none.
pub fn seeds() -> Vec<Vec<u8>> {
    super::owned(&[
        "2026-11-21T09:54:07Z,ns,train-0",
        "2026-11-21T09:54:07Z_ns/train-0",
        "2026-11-21T09:54:07Z",
        "2026-11-21T09:54:07.123456789+01:00",
        "2026-11-21T09:54:07+01:00[Europe/Berlin],ns,p",
        "-000001-01-01T00:00:00Z",
        "9999-12-30T22:00:00.999999999Z",
        "2026-11-21T09:54:07Z,,p",
        "2026-11-21T09:54:07Z,default,a b",
        "2026-11-21T09:54:07Z,../../../version?,p",
        "2026-11-21T09:54:07Z_p",
        "locked",
        "",
    ])
}
