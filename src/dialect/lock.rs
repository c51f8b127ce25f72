//! The node lock: which pod holds a node's agent, since when, and how that is written.
//!
//! Values that exist: HAMi's `<RFC3339>,<namespace>,<pod>` (`pkg/util/nodelock/nodelock.go`), the form of Volcano's design
//! `<RFC3339>_<namespace>/<pod>` (`docs/design/node-lock.md`), and a bare `<RFC3339>` of both projects' older code. Each is read
//! under every key; one is written.

use jiff::{SignedDuration, Timestamp};

use crate::{
    device::{Lock, LockNeed, LockOwner},
    excerpt::{VALUE, excerpt},
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
    /// When a pod needs it.
    pub need: LockNeed,
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

/// Reads a lock's value, in whichever form; of one that can't be read an excerpt is kept.
pub fn parse(value: &str) -> Lock {
    read(value).unwrap_or_else(|| Lock::Malformed { value: excerpt(value, VALUE).into_owned() })
}

fn read(value: &str) -> Option<Lock> {
    let (since, owner) = if let Some((since, pod)) = value.split_once(',') {
        let (namespace, name) = pod.split_once(',')?;
        (since, Some(LockOwner::parse(namespace, name)?))
    } else if let Some((since, pod)) = value.split_once('_') {
        let (namespace, name) = pod.split_once('/')?;
        (since, Some(LockOwner::parse(namespace, name)?))
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

    fn spec(form: LockForm) -> LockSpec {
        LockSpec { key: "k".into(), form, expiry: SignedDuration::from_mins(5), need: LockNeed::Always }
    }

    #[test]
    fn each_form_reads_back_as_it_was_written() {
        let now: Timestamp = "2026-11-21T09:54:07Z".parse().unwrap();
        for form in [LockForm::Comma, LockForm::Underscore] {
            let spec = spec(form);
            let value = spec.value(&owner(), now);
            assert_eq!(parse(&value), Lock::Held { owner: Some(owner()), since: now }, "{value}");
        }
        let bare = spec(LockForm::Bare);
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

    #[test]
    fn a_holder_that_no_api_server_could_store_is_no_holder() {
        let long = "x".repeat(254);
        let holders = [
            ("default", "a b"),
            ("default", "a\0"),
            ("default", "a\n"),
            ("default", "P"),
            ("default", "../../../version?"),
            ("default", ".."),
            ("default", "a..b"),
            ("default", "-a"),
            ("default", "a."),
            ("default", "ü"),
            ("default", &long),
            ("../../../version?", "p"),
            ("..", "p"),
            ("team.a", "p"),
            ("Team", "p"),
            ("team-", "p"),
            ("te am", "p"),
            (&long[..64], "p"),
        ];
        for (namespace, name) in holders {
            for value in [
                format!("2026-11-21T09:54:07Z,{namespace},{name}"),
                format!("2026-11-21T09:54:07Z_{namespace}/{name}"),
            ] {
                assert!(matches!(parse(&value), Lock::Malformed { .. }), "{value:?}");
            }
        }
        let allowed = LockOwner::parse(&long[..63], &format!("0.{}", &long[..251]));
        assert!(allowed.is_some());
    }

    #[test]
    fn of_a_long_value_an_excerpt_is_kept() {
        let Lock::Malformed { value } = parse(&format!("{}\n", "x".repeat(100_000))) else { panic!() };
        assert_eq!(value, format!("{}… (99901 more characters)", "x".repeat(VALUE)));
    }
}
