//! Every rule, with its stable name and its meaning.

use super::verdict::Rule;
use crate::dialect::Problem;

/// Volcano's budget of a job.
pub const BUDGET: Rule = Rule("budget");
/// Volcano's cooldown time.
pub const COOLDOWN_TIME: Rule = Rule("cooldown-time");
/// A share without a number of cards.
pub const COUNT_MISSING: Rule = Rule("count-missing");
/// The host's device files.
pub const DEVICE_MOUNT: Rule = Rule("device-mount");
/// An expected duration that is none.
pub const EXPECTED_DURATION: Rule = Rule("expected-duration");
/// The pod's hints and its namespace's leave no card.
pub const HINT_CONFLICT: Rule = Rule("hint-conflict");
/// Wanted and unwanted cards that are the same.
pub const HINT_CONTRADICTION: Rule = Rule("hint-contradiction");
/// A list with empty elements.
pub const HINT_EMPTY: Rule = Rule("hint-empty");
/// A key that is nearly a hint's.
pub const HINT_KEY: Rule = Rule("hint-key");
/// A list that is too long to be compared with the cards.
pub const HINT_LENGTH: Rule = Rule("hint-length");
/// A word that no hint knows.
pub const HINT_VALUE: Rule = Rule("hint-value");
/// An amount that is hardly meant.
pub const IMPLAUSIBLE_AMOUNT: Rule = Rule("implausible-amount");
/// Memory as an amount and as a percentage.
pub const MEMORY_TWICE: Rule = Rule("memory-twice");
/// One pod asks for shares in two modes.
pub const MODE_CONFLICT: Rule = Rule("mode-conflict");
/// The pod asks in a mode that the settings do not serve.
pub const MODE_DISABLED: Rule = Rule("mode-disabled");
/// The pod names a node of another mode.
pub const MODE_OF_NODE: Rule = Rule("mode-of-node");
/// No card is one that the hints admit.
pub const NO_SUCH_CARD: Rule = Rule("no-such-card");
/// Another scheduler is to place the share.
pub const OTHER_SCHEDULER: Rule = Rule("other-scheduler");
/// A mark of preemption that is taken back once the pod is bound.
pub const PREEMPTABLE_CHANGED: Rule = Rule("preemptable-changed");
/// Marks of preemption that contradict each other.
pub const PREEMPTABLE_CONFLICT: Rule = Rule("preemptable-conflict");
/// Preemptable and of a critical class.
pub const PREEMPTABLE_CRITICAL: Rule = Rule("preemptable-critical");
/// A mark of preemption that is neither true nor false.
pub const PREEMPTABLE_VALUE: Rule = Rule("preemptable-value");
/// The node is set already.
pub const PRESET_NODE: Rule = Rule("preset-node");
/// A privileged container beside a share.
pub const PRIVILEGED: Rule = Rule("privileged");
/// A quantity that can't be represented.
pub const QUANTITY: Rule = Rule("quantity");
/// The namespace's quota of shares.
pub const QUOTA: Rule = Rule("quota");
/// A request that is not its limit.
pub const REQUEST_DIFFERS: Rule = Rule("request-differs");
/// A resource whose name is nearly one of ours.
pub const RESOURCE_NAME: Rule = Rule("resource-name");
/// A pod that must stay, on a node that is taken back.
pub const REVOCABLE_NODE: Rule = Rule("revocable-node");
/// A zone that is not known, or that the pod contradicts.
pub const REVOCABLE_ZONE: Rule = Rule("revocable-zone");
/// More cards than a node has.
pub const TOO_MANY_CARDS: Rule = Rule("too-many-cards");
/// More demands on nodes and other pods than are served.
pub const TOO_MANY_CONSTRAINTS: Rule = Rule("too-many-constraints");
/// More memory than a card has.
pub const TOO_MUCH_MEMORY: Rule = Rule("too-much-memory");
/// A uuid that no card has.
pub const UNKNOWN_CARD: Rule = Rule("unknown-card");
/// A combination that the node's device plugin, or Berth, can't serve.
pub const UNSERVED: Rule = Rule("unserved");
/// Cards made visible by hand.
pub const VISIBLE_DEVICES: Rule = Rule("visible-devices");

/// Every rule and its meaning, by name.
pub const ALL: [(Rule, &str); 36] = [
    (
        BUDGET,
        "a job's budget (`jdb-*`) is neither a whole number above 0 nor `1%` to `99%`, both are set, or the only pod of its job could never be evicted",
    ),
    (COOLDOWN_TIME, "`cooldown-time` is not a duration"),
    (
        COUNT_MISSING,
        "a container asks for GPU memory or cores, but for no number of cards, and no default count is set",
    ),
    (
        DEVICE_MOUNT,
        "a pod with a share mounts `/dev` or `/dev/nvidia*` of the host (setting: deny, warn, allow)",
    ),
    (EXPECTED_DURATION, "`berth.dev/expected-duration` is not a positive duration"),
    (HINT_CONFLICT, "the UUID hints of the pod and of its namespace have no card in common"),
    (
        HINT_CONTRADICTION,
        "unwanted cards or types exclude wanted ones: denied if none is left, else a warning",
    ),
    (HINT_EMPTY, "a list of cards or types has empty elements: denied if it has no others, else a warning"),
    (HINT_KEY, "an annotation's key is nearly that of a hint (warning)"),
    (
        HINT_LENGTH,
        "a list of cards or types, or a hint about devices, is too long to be compared with the cards of a cluster",
    ),
    (HINT_VALUE, "an unknown policy (warning), or an unknown mode, boolean or set of weights (denied)"),
    (
        IMPLAUSIBLE_AMOUNT,
        "a container asks for less than 64 MiB of a card, or for more than 1 TiB if the cards are not known (warning)",
    ),
    (MEMORY_TWICE, "a container gives GPU memory as an amount and as a percentage"),
    (
        MODE_CONFLICT,
        "containers of one pod ask for GPU shares in different modes, or a claim is beside a share in another mode than HAMi's",
    ),
    (MODE_DISABLED, "the pod asks for a GPU share in a mode that the settings do not serve"),
    (MODE_OF_NODE, "the nodes that the pod names offer cards in another mode only"),
    (NO_SUCH_CARD, "no known GPU matches the hints (setting: deny, warn, allow)"),
    (OTHER_SCHEDULER, "the pod names another scheduler, which must place the share (warning)"),
    (
        PREEMPTABLE_CHANGED,
        "a change removes the mark by which a bound pod is evicted when its revocable zone closes",
    ),
    (PREEMPTABLE_CONFLICT, "annotation, label and PodGroup disagree on `preemptable`"),
    (PREEMPTABLE_CRITICAL, "a preemptable pod is of a system-critical priority class"),
    (PREEMPTABLE_VALUE, "`preemptable` is neither true nor false, as Go parses a bool"),
    (
        PRESET_NODE,
        "a pod with a share names its node, bypassing every scheduler (setting: deny, warn, allow)",
    ),
    (PRIVILEGED, "a pod with a share has a privileged container (setting: deny, warn, allow)"),
    (
        QUANTITY,
        "a quantity of a GPU resource can't be represented: a fraction, negative, too large, or no number",
    ),
    (QUOTA, "the pod would exceed a ResourceQuota on shares of its namespace (setting: deny, warn, allow)"),
    (REQUEST_DIFFERS, "request and limit of a GPU resource differ"),
    (RESOURCE_NAME, "a resource's name is nearly that of a share, and no known program offers it (warning)"),
    (REVOCABLE_NODE, "a pod that must not be preempted names only nodes of revocable zones"),
    (
        REVOCABLE_ZONE,
        "`revocable-zone` is unknown, or is set beside `preemptable: false`; no node is in the zone, or it has no window \
         (warning)",
    ),
    (TOO_MANY_CARDS, "a container asks for more cards than any node has (setting: deny, warn, allow)"),
    (
        TOO_MANY_CONSTRAINTS,
        "the pod has more than 1024 requirements, values and tolerations, more than 64 terms about other pods, or more than 32 claims of volumes",
    ),
    (TOO_MUCH_MEMORY, "a container asks for more of a card than any card has (setting: deny, warn, allow)"),
    (UNKNOWN_CARD, "a UUID hint names a card that is not known (warning)"),
    (UNSERVED, "the combination can't be served by the node's device plugin or by Berth"),
    (VISIBLE_DEVICES, "a pod with a share sets NVIDIA_VISIBLE_DEVICES itself (setting: deny, warn, allow)"),
];

/// The rule that a reading trouble breaks.
pub fn of_problem(problem: Problem) -> Rule {
    match problem {
        Problem::CountMissing => COUNT_MISSING,
        Problem::MemoryTwice => MEMORY_TWICE,
        Problem::Hint => HINT_VALUE,
        Problem::Unserved => UNSERVED,
        Problem::Quantity | Problem::Registration | Problem::Assignment | Problem::Card | Problem::Lock => {
            QUANTITY
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_stand_in_order_of_their_names_each_once() {
        assert!(ALL.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
