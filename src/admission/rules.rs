//! Every rule by its stable name, with what it means.

use super::verdict::Rule;
use crate::dialect::Problem;

/// One pod asks for shares in two modes.
pub const MODE_CONFLICT: Rule = Rule("mode-conflict");
/// The pod asks in a mode that the settings do not serve.
pub const MODE_DISABLED: Rule = Rule("mode-disabled");
/// A quantity that can't be represented.
pub const QUANTITY: Rule = Rule("quantity");
/// A share without a number of cards.
pub const COUNT_MISSING: Rule = Rule("count-missing");
/// Memory as an amount and as a percentage.
pub const MEMORY_TWICE: Rule = Rule("memory-twice");
/// A combination that the node's device plugin, or Berth, can't serve.
pub const UNSERVED: Rule = Rule("unserved");
/// The pod's hints and its namespace's leave no card.
pub const HINT_CONFLICT: Rule = Rule("hint-conflict");

/// Every rule and its meaning, by name.
pub const ALL: [(Rule, &str); 7] = [
    (
        COUNT_MISSING,
        "a container asks for GPU memory or cores, but for no number of cards, and no default count is set",
    ),
    (HINT_CONFLICT, "the UUID hints of the pod and of its namespace have no card in common"),
    (MEMORY_TWICE, "a container gives GPU memory as an amount and as a percentage"),
    (
        MODE_CONFLICT,
        "containers of one pod ask for GPU shares in different modes: hami, vgpu, gpushare, gpunumber",
    ),
    (MODE_DISABLED, "the pod asks for a GPU share in a mode that the settings do not serve"),
    (
        QUANTITY,
        "a quantity of a GPU resource can't be represented: a fraction, negative, too large, or no number",
    ),
    (UNSERVED, "the combination can't be served by the node's device plugin or by Berth"),
];

/// The rule that a reading trouble breaks.
pub fn of_problem(problem: Problem) -> Rule {
    match problem {
        Problem::CountMissing => COUNT_MISSING,
        Problem::MemoryTwice => MEMORY_TWICE,
        Problem::Unserved => UNSERVED,
        Problem::Quantity | Problem::Registration | Problem::Assignment => QUANTITY,
    }
}
