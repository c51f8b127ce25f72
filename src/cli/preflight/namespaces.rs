//! Which namespaces have share pods, or workloads that make them, and whether they come in.

use std::collections::BTreeMap;

use super::{
    examination::Examination,
    finding::{PreflightFinding, called},
    rules,
    workloads::Template,
};
use crate::{
    admission::{namespace_pods, review::OPT_OUT},
    config::AdmissionScope,
    dialect::hami,
    object::Namespace,
};

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

/// The webhooks of an installation for shares, and for pods without one, which is left out where kube-scheduler binds these.
const FOR_SHARES: &str = "mutate.berth.dev";
const FOR_OTHERS: &str = "adopt.berth.dev";

/// The namespaces whose label for all their pods has no effect.
pub fn labels_without_effect(examination: &Examination<'_>) -> Vec<PreflightFinding> {
    let (label, seen) = (namespace_pods::LABEL, examination.seen);
    let asks = |name: &str| {
        let webhooks = seen.webhooks.iter().filter_map(|configuration| configuration["webhooks"].as_array());
        webhooks.flatten().any(|webhook| webhook["name"] == name)
    };
    let is_not_asked = asks(FOR_SHARES) && !asks(FOR_OTHERS);
    let finding = |namespace: &Namespace| {
        let value = namespace.metadata.label(label)?;
        let why = match coverage(namespace, examination) {
            Coverage::System => "its pods are never given to Berth".to_owned(),
            _ if !namespace_pods::are_given(&namespace.metadata) => {
                format!("`{value}` is no value of it: write `all`")
            }
            Coverage::OptedOut => format!("the namespace opts out with the label `{OPT_OUT}: ignore`"),
            Coverage::OptedOutOfHami => {
                format!("the namespace opts out with the label `{}: ignore`", hami::names::OPT_OUT)
            }
            Coverage::Covered | Coverage::Unlabelled if is_not_asked => format!(
                "the installed webhooks are without {FOR_OTHERS}: with --extender, kube-scheduler places these pods; otherwise apply the \
                 manifests again"
            ),
            Coverage::Covered | Coverage::Unlabelled => return None,
        };
        let object = called("Namespace", "", &namespace.metadata.name);
        let message = format!("the label `{label}` has no effect: {why}");
        Some(PreflightFinding::new(&rules::PODS_LABEL_IGNORED, object, message))
    };
    seen.namespaces.values().filter_map(finding).collect()
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

    #[test]
    fn labels_that_give_no_pod_to_berth_are_found() {
        let found = |webhooks: &[&str]| {
            let mut seen = Seen::default();
            for (name, labels) in [
                ("web", json!({"berth.dev/pods": "all"})),
                ("typo", json!({"berth.dev/pods": "al"})),
                ("out", json!({"berth.dev/pods": "all", "berth.dev/admission": "ignore"})),
                ("hami-out", json!({"berth.dev/pods": "all", "hami.io/webhook": "ignore"})),
                ("kube-system", json!({"berth.dev/pods": "all"})),
                ("berth-system", json!({"berth.dev/pods": "all"})),
                ("none", json!({})),
            ] {
                seen.take(json!({"kind": "Namespace", "metadata": {"name": name, "labels": labels}}));
            }
            let webhooks: Vec<_> = webhooks.iter().map(|name| json!({"name": name})).collect();
            let kind = "MutatingWebhookConfiguration";
            seen.take(json!({"kind": kind, "metadata": {"name": "berth"}, "webhooks": webhooks}));
            let config = Config::default();
            let examination = Examination::new(&seen, &config, "berth-system", jiff::Timestamp::UNIX_EPOCH);
            let objects = labels_without_effect(&examination).into_iter().map(|finding| finding.object);
            objects.collect::<Vec<_>>()
        };
        let always = ["berth-system", "hami-out", "kube-system", "out", "typo"];
        let names = |names: &[&str]| names.iter().map(|name| format!("Namespace {name}")).collect::<Vec<_>>();
        assert_eq!(found(&[]), names(&always), "nothing is installed yet");
        assert_eq!(found(&[FOR_SHARES, FOR_OTHERS]), names(&always));
        assert_eq!(found(&[FOR_SHARES]), names(&[&always[..], &["web"]].concat()), "as with --extender");
    }
}
