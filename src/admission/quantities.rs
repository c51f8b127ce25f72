//! What can't be read exactly is denied: the dialects' own parser, which scheduling uses too, says so.

use super::{
    draft::{ContainerList, Draft},
    facts::Facts,
    rules,
    verdict::Violation,
};
use crate::{dialect::Dialect, object::Container};

/// What of the pod can't be read.
pub fn violations(draft: &Draft, facts: &Facts) -> Vec<Violation> {
    let troubles = facts.dialects.iter().filter_map(|dialect| dialect.request(draft.pod()).err()).flatten();
    let violations = troubles.map(|trouble| Violation {
        rule: rules::of_problem(trouble.problem),
        field: trouble.field,
        message: trouble.message,
    });
    violations.collect()
}

/// Adds the default count to each container that asks for a share without one: without it no node agent would be asked.
pub fn add_default_counts(draft: &mut Draft, facts: &Facts) {
    for dialect in facts.dialects.iter() {
        let Some((count, amount)) = dialect.default_count() else { continue };
        for list in [ContainerList::Init, ContainerList::App] {
            let containers = list.of(draft.pod()).iter().enumerate();
            let lacking: Vec<usize> = containers
                .filter(|(_, container)| lacks_count(container, dialect.as_ref(), count))
                .map(|(at, _)| at)
                .collect();
            for at in lacking {
                draft.add_limit(list, at, count, amount);
            }
        }
    }
}

fn lacks_count(container: &Container, dialect: &dyn Dialect, count: &str) -> bool {
    let states = |name: &str| container.resources.limit_or_request(name).is_some();
    !states(count) && dialect.share_resources().into_iter().any(states)
}
