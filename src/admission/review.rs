//! The order of the rules: who comes in, what can't be read, what is missing, what is left to judge.

use super::{
    draft::Draft,
    facts::Facts,
    hints, modes, quantities,
    request::{Operation, Request, Stage},
    scheduler_name,
    verdict::{Verdict, Violation},
};
use crate::{dialect::hami, object::Metadata};

/// The label that keeps a pod or a namespace from being changed.
pub const OPT_OUT: &str = "berth.dev/admission";

/// Judges one pod.
pub fn review(request: &Request<'_>, facts: &Facts) -> Verdict {
    if request.operation != Operation::Create {
        return Verdict::Ignored;
    }
    let modes = modes::asked(request.pod, facts);
    if modes.is_empty() {
        return Verdict::Ignored;
    }
    let mut draft = Draft::new(request.pod);
    let mut warnings = Vec::new();
    let mut violations = modes::violations(&modes, facts);
    if violations.is_empty() && request.stage == Stage::Mutate && !opts_out(request, facts) {
        violations.extend(mutate(&mut draft, request, facts, &mut warnings));
    }
    if violations.is_empty() {
        violations.extend(quantities::violations(&draft, facts));
    }
    if violations.is_empty() {
        return Verdict::Admitted { patch: draft.into_operations(), warnings };
    }
    violations.sort();
    violations.dedup();
    Verdict::Denied { violations, warnings }
}

fn mutate(
    draft: &mut Draft,
    request: &Request<'_>,
    facts: &Facts,
    warnings: &mut Vec<String>,
) -> Vec<Violation> {
    quantities::add_default_counts(draft, facts);
    warnings.extend(scheduler_name::set(draft, facts));
    let Some(namespace) = hints::namespace(facts, request.namespace) else { return Vec::new() };
    let asked = modes::asked(draft.pod(), facts);
    let spoken = facts.dialects.iter().filter(|dialect| asked.contains_key(&dialect.mode()));
    spoken.flat_map(|dialect| hints::merge(draft, namespace, dialect.hint_keys())).collect()
}

fn opts_out(request: &Request<'_>, facts: &Facts) -> bool {
    let ignored = |metadata: &Metadata| {
        [OPT_OUT, hami::names::OPT_OUT].into_iter().any(|key| metadata.label(key) == Some("ignore"))
    };
    ignored(&request.pod.metadata) || hints::namespace(facts, request.namespace).is_some_and(ignored)
}
