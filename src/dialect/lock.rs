//! The node lock: who holds a node's agent, since when, and how that is written.
//!
//! Values that exist: HAMi's `<RFC3339>,<namespace>,<pod>` (`pkg/util/nodelock/nodelock.go`), the form of Volcano's design
//! `<RFC3339>_<namespace>/<pod>` (`docs/design/node-lock.md`), and a bare `<RFC3339>` of both projects' older code. Each is read
//! under every key; one is written.

use jiff::{SignedDuration, Timestamp};

use crate::{
    device::{Lock, LockOwner},
    object::Node,
};

/// The form in which a lock is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LockForm {
    /// `<RFC3339>,<namespace>,<pod>`
    Comma,
    /// `<RFC3339>_<namespace>/<pod>`
    Underscore,
    /// `<RFC3339>`
    Bare,
}

/// One lock of a node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LockSpec {
    /// The annotation's key.
    pub key: String,
    /// The form that its readers parse.
    pub form: LockForm,
    /// After this time a foreign holder that gives no sign may be taken over.
    pub expiry: SignedDuration,
}

impl LockSpec {
    /// What stands under this lock's key.
    pub fn read(&self, node: &Node) -> Lock {
        node.metadata.annotation(&self.key).map_or(Lock::Free, parse)
    }

    /// The value that says that this pod holds the lock since now.
    pub fn value(&self, owner: &LockOwner, now: Timestamp) -> String {
        let since = now.strftime("%Y-%m-%dT%H:%M:%SZ");
        let LockOwner { namespace, name } = owner;
        match self.form {
            LockForm::Comma => format!("{since},{namespace},{name}"),
            LockForm::Underscore => format!("{since}_{namespace}/{name}"),
            LockForm::Bare => since.to_string(),
        }
    }
}

/// Reads a lock's value, in whichever form.
pub fn parse(value: &str) -> Lock {
    read(value).unwrap_or_else(|| Lock::Malformed { value: value.to_owned() })
}

fn read(value: &str) -> Option<Lock> {
    let owner = |namespace: &str, name: &str| {
        let named = !namespace.is_empty() && !name.is_empty() && !name.contains([',', '/']);
        named.then(|| LockOwner { namespace: namespace.to_owned(), name: name.to_owned() })
    };
    let (since, owner) = if let Some((since, pod)) = value.split_once(',') {
        let (namespace, name) = pod.split_once(',')?;
        (since, Some(owner(namespace, name)?))
    } else if let Some((since, pod)) = value.split_once('_') {
        let (namespace, name) = pod.split_once('/')?;
        (since, Some(owner(namespace, name)?))
    } else {
        (value, None)
    };
    Some(Lock::Held { owner, since: since.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> LockOwner {
        LockOwner { namespace: "ns".into(), name: "train-0".into() }
    }

    #[test]
    fn each_form_reads_back_as_it_was_written() {
        let now: Timestamp = "2026-11-21T09:54:07Z".parse().unwrap();
        for form in [LockForm::Comma, LockForm::Underscore] {
            let spec = LockSpec { key: "k".into(), form, expiry: SignedDuration::from_mins(5) };
            let value = spec.value(&owner(), now);
            assert_eq!(parse(&value), Lock::Held { owner: Some(owner()), since: now }, "{value}");
        }
        let bare = LockSpec { key: "k".into(), form: LockForm::Bare, expiry: SignedDuration::from_mins(5) };
        assert_eq!(bare.value(&owner(), now), "2026-11-21T09:54:07Z");
        assert_eq!(parse("2026-11-21T10:54:07+01:00"), Lock::Held { owner: None, since: now });
    }

    #[test]
    fn a_value_that_says_nothing_is_malformed() {
        for value in [
            "",
            "locked",
            "2026-11-21T09:54:07Z,ns",
            "2026-11-21T09:54:07Z,,p",
            "2026-11-21T09:54:07Z_p",
            ",ns,p",
            "2026-11-21T09:54:07Z,ns,p,q",
        ] {
            assert_eq!(parse(value), Lock::Malformed { value: value.into() });
        }
    }
}
