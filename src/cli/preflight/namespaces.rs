//! Which namespaces have share pods, or workloads that make them, and whether they come in.

use std::collections::BTreeMap;

use super::{
    examination::Examination,
    finding::{PreflightFinding, called},
    rules,
    workloads::Template,
};
use crate::{admission::review::OPT_OUT, config::AdmissionScope, dialect::hami, object::Namespace};

/// The namespace that never comes in, beside Berth's own.
const KUBE_SYSTEM: &str = "kube-system";

/// Whether the share pods of a namespace come in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Coverage {
    /// They do.
    Covered,
    /// The namespace has yet to be labelled.
    Unlabelled,
    /// It opts out by Berth's label.
    OptedOut,
    /// It opts out by HAMi's label, which keeps its pods from being changed.
    OptedOutOfHami,
    /// It never comes in.
    System,
}

/// Whether the pods of a namespace come in, by the settings.
pub fn coverage(namespace: &Namespace, examination: &Examination<'_>) -> Coverage {
    let metadata = &namespace.metadata;
    match (metadata.label(OPT_OUT), examination.config.scope) {
        _ if metadata.name == KUBE_SYSTEM || metadata.name == examination.namespace => Coverage::System,
        (Some("ignore"), _) => Coverage::OptedOut,
        _ if metadata.label(hami::names::OPT_OUT) == Some("ignore") => Coverage::OptedOutOfHami,
        (Some("enabled"), _) | (_, AdmissionScope::OptOut) => Coverage::Covered,
        (_, AdmissionScope::OptIn) => Coverage::Unlabelled,
    }
}

/// How many share pods and workloads a namespace has.
type Counts<'a> = BTreeMap<&'a str, (usize, usize)>;

fn counts<'a>(examination: &Examination<'a>, templates: &'a [Template<'a>]) -> Counts<'a> {
    let mut counts = Counts::new();
    for pod in examination.seen.pods.iter().filter(|pod| examination.asks(pod)) {
        counts.entry(&pod.metadata.namespace).or_default().0 += 1;
    }
    for template in templates {
        counts.entry(template.namespace()).or_default().1 += 1;
    }
    counts
}

/// The namespaces with shares that a label lets in, by name: those without one that stay in when Berth serves every namespace, too.
pub fn to_label(examination: &Examination<'_>, templates: &[Template<'_>]) -> Vec<String> {
    let unlabelled = |name: &&str| {
        let namespace = examination.seen.namespaces.get(*name);
        namespace.is_some_and(|namespace| {
            let comes_in =
                matches!(coverage(namespace, examination), Coverage::Covered | Coverage::Unlabelled);
            comes_in && namespace.metadata.label(OPT_OUT).is_none()
        })
    };
    counts(examination, templates).into_keys().filter(unlabelled).map(str::to_owned).collect()
}

/// The command that lets a namespace in.
pub fn label(namespace: &str) -> String {
    format!("kubectl label namespace {namespace} {OPT_OUT}=enabled --overwrite")
}

/// The namespaces whose share pods would not come in.
pub fn findings(examination: &Examination<'_>, templates: &[Template<'_>]) -> Vec<PreflightFinding> {
    let finding = |(name, (pods, workloads)): (&str, (usize, usize))| {
        let coverage = coverage(examination.seen.namespaces.get(name)?, examination);
        let has = format!("has {pods} share pod(s) and {workloads} pod template(s) with shares");
        let object = called("Namespace", "", name);
        let found = |why: &str| {
            PreflightFinding::new(&rules::NAMESPACE_NOT_COVERED, &object, format!("{has}, and {why}"))
        };
        match coverage {
            Coverage::Covered => None,
            Coverage::Unlabelled => {
                Some(found(&format!("is not labelled `{OPT_OUT}: enabled`")).with_command(label(name)))
            }
            Coverage::OptedOut => Some(found(&format!("opts out with the label `{OPT_OUT}: ignore`"))),
            Coverage::OptedOutOfHami => Some(found(&format!(
                "opts out with the label `{}: ignore`: where it comes in all the same, pods that name no scheduler of shares are refused; \
                 label it `{OPT_OUT}: ignore` too, or remove that label",
                hami::names::OPT_OUT
            ))),
            Coverage::System => {
                let message = format!("{has}, and never comes in: move them to another namespace");
                Some(PreflightFinding::new(&rules::SYSTEM_NAMESPACE, object, message))
            }
        }
    };
    counts(examination, templates).into_iter().filter_map(finding).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{cli::preflight::seen::Seen, config::Config};

    fn found(settings: &str) -> Vec<(&'static str, String)> {
        let mut seen = Seen::default();
        let labels = [
            ("a", json!({})),
            ("enabled", json!({"berth.dev/admission": "enabled"})),
            ("out", json!({"berth.dev/admission": "ignore"})),
            ("hami-out", json!({"hami.io/webhook": "ignore"})),
            ("kube-system", json!({"berth.dev/admission": "enabled"})),
            ("empty", json!({})),
        ];
        for (name, labels) in labels {
            seen.take(json!({"kind": "Namespace", "metadata": {"name": name, "labels": labels}}));
            let limits = if name == "empty" { json!({"cpu": 1}) } else { json!({"nvidia.com/gpu": 1}) };
            let spec = json!({"containers": [{"name": "c", "resources": {"limits": limits}}]});
            seen.take(json!({"kind": "Pod", "metadata": {"namespace": name, "name": "p"}, "spec": spec}));
        }
        let config = Config::parse(settings, "f").unwrap().0;
        let examination = Examination::new(&seen, &config, "berth-system", jiff::Timestamp::UNIX_EPOCH);
        let found = findings(&examination, &[]);
        found.into_iter().map(|finding| (finding.rule, finding.object)).collect()
    }

    #[test]
    fn namespaces_with_shares_that_stay_out_are_found() {
        let not_covered = |name: &str| ("namespace-not-covered", format!("Namespace {name}"));
        let system = ("system-namespace", "Namespace kube-system".to_owned());
        assert_eq!(
            found(""),
            [not_covered("a"), not_covered("hami-out"), system.clone(), not_covered("out")]
        );
        assert_eq!(found("scope: opt-out"), [not_covered("hami-out"), system, not_covered("out")]);
    }
}
