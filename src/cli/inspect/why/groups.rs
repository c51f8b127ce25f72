//! The table of nodes that refuse a pod, those that lack the same in one line.

use crate::{
    api::explanation::NodeGroup,
    cli::{
        output::{Detail, Shown},
        table::Table,
    },
};

/// So many names of a group are shown in a table that is not wide.
const MOST_NAMES: usize = 3;

/// A line for each group.
pub(super) fn table(groups: &[NodeGroup], detail: Detail) -> Shown {
    let most = if detail == Detail::Wide { usize::MAX } else { MOST_NAMES };
    let mut table = Table::new(&["NODES", "LACK", "NAMES"]);
    for NodeGroup { reasons, count, names } in groups {
        let reasons: Vec<_> = reasons
            .iter()
            .map(|one| match one.by {
                Some(by) => format!("{} ({by})", one.reason),
                None => one.reason.clone(),
            })
            .collect();
        let mut shown = names[..names.len().min(most)].join(", ");
        if let Some(more) = names.len().checked_sub(most).filter(|more| *more > 0) {
            shown = format!("{shown} and {more} more");
        }
        table.row([count.to_string(), reasons.join(", "), shown]);
    }
    table.render()
}
