//! What a node lacks for a pod's claims of devices: the claim, the request, and what holds the devices that would do.

use std::{fmt, sync::Arc};

use crate::scheduling::world::resource_claims::DeviceHolder;

/// So many holders of devices, or claims, are named; the others are counted.
pub const MOST_NAMED: usize = 3;

/// What a node lacks for a pod's claims.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ClaimShortage {
    /// Too few devices are free for one request.
    Request {
        /// The claim; `None`: the one that serves extended resources.
        claim: Option<Arc<str>>,
        /// The request.
        request: Arc<str>,
        /// How many devices it needs.
        wanted: usize,
        /// How many of the node would do.
        matching: usize,
        /// How many of them have a taint which the request does not tolerate.
        tainted: usize,
        /// How many of the others need a feature which the node's kubelet does not declare.
        featureless: usize,
        /// How many of the others are in use.
        in_use: usize,
        /// What holds these.
        holders: Holders,
    },
    /// Enough devices are free for each request of these claims, but not for all of them together.
    Together(Vec<Arc<str>>),
}

/// What holds devices.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Holders {
    /// Each once.
    pub all: Vec<DeviceHolder>,
    /// The namespace of the pod that lacks the devices.
    pub namespace: Arc<str>,
}

impl Holders {
    /// The first of them, and how many others there are; ` and 2 others`.
    fn words(&self, named: impl Fn(&DeviceHolder) -> bool) -> String {
        let first = self.all.iter().filter(|holder| named(holder)).take(MOST_NAMED);
        let first: Vec<String> = first.map(DeviceHolder::to_string).collect();
        let others = self.all.len() - first.len();
        match (first.is_empty(), others) {
            (true, 0) => String::new(),
            (true, others) => format!("; held by {others} other(s)"),
            (false, 0) => format!("; held by {}", first.join(", ")),
            (false, others) => format!("; held by {} and {others} other(s)", first.join(", ")),
        }
    }
}

impl ClaimShortage {
    fn words(&self, named: impl Fn(&DeviceHolder) -> bool) -> String {
        match self {
            Self::Request { claim, request, wanted, matching, tainted, featureless, in_use, holders } => {
                let claim = match claim {
                    Some(claim) => format!("claim {claim}"),
                    None => "claim for extended resources".to_owned(),
                };
                let kept_away = in_use + tainted + featureless;
                let free = matching.saturating_sub(kept_away);
                let amounts = match (matching, kept_away) {
                    (0, _) => "no device matches".to_owned(),
                    (_, 0) => format!("{matching} matching device(s), {wanted} needed"),
                    _ => format!("{free} of {matching} matching device(s) free, {wanted} needed"),
                };
                let tainted = if *tainted > 0 { format!("; {tainted} tainted") } else { String::new() };
                let featureless = match featureless {
                    0 => String::new(),
                    count => format!("; {count} only for nodes with the feature DRAOptionalNodeOperations"),
                };
                format!("{claim}, request {request}: {amounts}{tainted}{featureless}{}", holders.words(named))
            }
            Self::Together(claims) => {
                let first: Vec<&str> = claims.iter().take(MOST_NAMED).map(|claim| &**claim).collect();
                let more = if claims.len() > MOST_NAMED { ", …" } else { "" };
                format!(
                    "claim(s) {}{more}: devices are free for each request, but no choice of them meets all requests and constraints",
                    first.join(", ")
                )
            }
        }
    }

    /// Its words with the holders of the pod's own namespace alone; the others are counted.
    pub fn own_words(&self) -> String {
        let namespace = match self {
            Self::Request { holders, .. } => holders.namespace.clone(),
            Self::Together(_) => Arc::default(),
        };
        self.words(|holder| holder.is_of(&namespace))
    }
}

/// `claim c, request gpu: 0 of 1 matching device(s) free, 1 needed; held by team-b/train`.
impl fmt::Display for ClaimShortage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.words(|_| true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(namespace: &str, name: &str) -> DeviceHolder {
        DeviceHolder::Pod { namespace: namespace.into(), name: name.into() }
    }

    fn shortage(matching: usize, in_use: usize, all: Vec<DeviceHolder>) -> ClaimShortage {
        let holders = Holders { all, namespace: "team".into() };
        ClaimShortage::Request {
            claim: Some("c".into()),
            request: "gpu".into(),
            wanted: 2,
            matching,
            tainted: 0,
            featureless: 0,
            in_use,
            holders,
        }
    }

    #[test]
    fn devices_that_a_taint_keeps_from_the_request_are_counted_apart() {
        let tainted = |count: usize, all: Vec<DeviceHolder>| {
            let mut shortage = shortage(3, all.len(), all);
            if let ClaimShortage::Request { tainted, .. } = &mut shortage {
                *tainted = count;
            }
            shortage.to_string()
        };
        let words = "claim c, request gpu: ";
        let alone = format!("{words}0 of 3 matching device(s) free, 2 needed; 3 tainted");
        assert_eq!(tainted(3, Vec::new()), alone);
        let both = format!("{words}1 of 3 matching device(s) free, 2 needed; 1 tainted; held by other/a");
        assert_eq!(tainted(1, vec![pod("other", "a")]), both);
    }

    #[test]
    fn a_few_holders_are_named_and_the_others_are_counted() {
        let holders = || ["a", "b", "d", "e", "f"].map(|name| pod("other", name)).into_iter();
        let both = shortage(6, 5, holders().chain([pod("team", "own")]).collect());
        assert_eq!(
            both.to_string(),
            "claim c, request gpu: 1 of 6 matching device(s) free, 2 needed; held by other/a, other/b, other/d and 3 other(s)"
        );
        assert_eq!(
            both.own_words(),
            "claim c, request gpu: 1 of 6 matching device(s) free, 2 needed; held by team/own and 5 other(s)"
        );
        let shares = shortage(1, 1, vec![DeviceHolder::Shares]);
        let words = "claim c, request gpu: 0 of 1 matching device(s) free, 2 needed; held by ";
        assert_eq!(shares.to_string(), format!("{words}GPU shares of pods"));
        assert_eq!(shares.own_words(), format!("{words}1 other(s)"));
    }

    #[test]
    fn what_nothing_holds_is_said_without_a_holder() {
        assert_eq!(shortage(0, 0, Vec::new()).to_string(), "claim c, request gpu: no device matches");
        let few = shortage(1, 0, Vec::new());
        assert_eq!(few.to_string(), "claim c, request gpu: 1 matching device(s), 2 needed");
        let claims = ["a", "b", "d", "e"].map(Arc::from).to_vec();
        let words = "claim(s) a, b, d, …: devices are free for each request, but no choice of them meets all requests and constraints";
        assert_eq!(ClaimShortage::Together(claims).to_string(), words);
    }
}
