//! Whether pods keep coming faster than one node serves them.

use jiff::{SignedDuration, Timestamp};

/// So many pods in lines at once are a crowd.
const CROWD: usize = 2;

/// How long there has to be a crowd before it is a surge: pods that come at once have come in by then, and are packed as tightly as ever.
const LASTING: SignedDuration = SignedDuration::from_millis(250);

/// How long fewer pods have to stand in lines before a crowd is over.
const BREAK: SignedDuration = SignedDuration::from_secs(1);

/// What is known of the pods that have stood in lines.
#[derive(Debug, Default)]
pub(super) struct Surge {
    crowd: Option<Crowd>,
    /// Whether there was a surge when that was last asked.
    is_on: bool,
}

/// Pods that stand in lines at once.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    /// Since when.
    since: Timestamp,
    /// When it is over unless more pods come; `None`: enough of them stand in lines.
    until: Option<Timestamp>,
}

impl Surge {
    /// So many pods stand in lines now. Returns whether there is a surge.
    pub(super) fn watch(&mut self, in_line: usize, now: Timestamp) -> bool {
        self.crowd.take_if(|crowd| crowd.until.is_some_and(|until| until <= now));
        if in_line >= CROWD {
            let since = self.crowd.map_or(now, |crowd| crowd.since);
            self.crowd = Some(Crowd { since, until: None });
        } else if let Some(crowd) = &mut self.crowd {
            crowd.until = crowd.until.or(now.checked_add(BREAK).ok());
        }
        self.is_on = self.crowd.is_some_and(|crowd| now.duration_since(crowd.since) >= LASTING);
        self.is_on
    }

    /// When a surge begins or ends although no pod comes or goes.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let crowd = self.crowd?;
        let begins = if self.is_on { None } else { crowd.since.checked_add(LASTING).ok() };
        begins.into_iter().chain(crowd.until).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).expect("a time")
    }

    #[test]
    fn pods_that_come_at_once_are_no_surge() {
        let mut surge = Surge::default();
        assert!(!surge.watch(1, at(0)));
        assert_eq!(surge.deadline(), None);
        assert!(!surge.watch(8, at(1)));
        assert!(!surge.watch(30, at(250)));
        assert_eq!(surge.deadline(), Some(at(251)));
    }

    #[test]
    fn pods_that_keep_coming_are_one_until_fewer_come_for_a_second() {
        let mut surge = Surge::default();
        assert!(!surge.watch(2, at(0)));
        assert!(surge.watch(2, at(250)));
        assert_eq!(surge.deadline(), None);
        assert!(surge.watch(1, at(300)));
        assert!(surge.watch(0, at(600)));
        assert_eq!(surge.deadline(), Some(at(1300)));
        assert!(surge.watch(2, at(1299)), "the break was short");
        assert!(surge.watch(0, at(2000)));
        assert!(!surge.watch(0, at(3000)));
        assert_eq!(surge.deadline(), None);
        assert!(!surge.watch(2, at(3000)), "another begins");
    }

    #[test]
    fn a_crowd_that_breaks_up_before_it_lasts_ends_with_its_break() {
        let mut surge = Surge::default();
        assert!(!surge.watch(2, at(0)));
        assert!(!surge.watch(1, at(10)));
        assert_eq!(surge.deadline(), Some(at(250)));
        assert!(surge.watch(1, at(250)));
        assert_eq!(surge.deadline(), Some(at(1010)));
        assert!(!surge.watch(1, at(1010)));
    }
}
