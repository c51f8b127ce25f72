//! What admission would say of the pods that workloads make: the rules of `berth review`, asked about each pod template.

use super::{
    examination::Examination,
    finding::{PreflightFinding, called},
    gangs, rules,
};
use crate::{
    admission::{Violation, passage::ReviewedPod, rules as admission_rules, scheduler_name},
    cli::{
        documents::{Document, DocumentError},
        review,
    },
    object::{
        Pod,
        workload::{KeptPod, Places},
    },
};

/// A pod template that asks for a share.
#[derive(Clone, Debug)]
pub struct Template<'a> {
    /// The workload.
    pub workload: &'a Document,
    /// Where the pod's fields stand in it.
    places: Places,
    /// The pod that it makes, as a document and as a pod.
    document: Document,
    pod: Pod,
}

impl Template<'_> {
    /// The workload's namespace.
    pub fn namespace(&self) -> &str {
        self.workload.namespace_or_default()
    }

    fn called(&self) -> String {
        called(self.workload.kind(), self.namespace(), self.workload.name().unwrap_or_default())
    }
}

/// The templates that ask for shares, and one finding for each that can't be read.
pub fn templates<'a>(examination: &Examination<'a>) -> (Vec<Template<'a>>, Vec<PreflightFinding>) {
    let (mut asking, mut findings) = (Vec::new(), Vec::new());
    let workloads = examination.config.workloads();
    for workload in &examination.seen.workloads {
        let unreadable = |error: DocumentError| {
            let namespace = workload.namespace_or_default();
            let object = called(workload.kind(), namespace, workload.name().unwrap_or_default());
            PreflightFinding::new(&rules::UNREADABLE_OBJECT, object, crate::excerpt::brief(&error))
        };
        let kept = workload.kept_pods(&workloads).map_err(|error| findings.push(unreadable(error)));
        for kept in kept.unwrap_or_default() {
            match read(workload, kept) {
                Ok(one) if examination.asks(&one.pod) => asking.push(one),
                Ok(_) => {}
                Err(error) => findings.push(unreadable(error)),
            }
        }
    }
    (asking, findings)
}

fn read(workload: &Document, kept: KeptPod) -> Result<Template<'_>, DocumentError> {
    let KeptPod { pod, places, .. } = kept;
    let document = workload.with_pod(pod);
    let pod = document.read_part(&document.value, &places)?;
    Ok(Template { workload, places, document, pod })
}

/// What would become of the pods of these templates.
pub fn findings(examination: &Examination<'_>, templates: &[Template<'_>]) -> Vec<PreflightFinding> {
    templates.iter().flat_map(|template| judged(examination, template)).collect()
}

fn judged(examination: &Examination<'_>, template: &Template<'_>) -> Vec<PreflightFinding> {
    let object = template.called();
    let mut findings: Vec<_> = unmanaged(examination, template).into_iter().collect();
    findings.extend(not_there(examination, template));
    findings.extend(gangs::without_kind(examination, &template.pod).map(|message| {
        let message = format!("{}: {message}", template.places.of("metadata"));
        PreflightFinding::new(&rules::GANG_WITHOUT_KIND, &object, message)
    }));
    let ReviewedPod { violations, warnings, .. } =
        match review::judge(&template.document, &template.places, &examination.facts) {
            Ok(judged) => judged,
            Err(error) => {
                findings.push(PreflightFinding::new(
                    &rules::UNREADABLE_OBJECT,
                    object,
                    crate::excerpt::brief(&error),
                ));
                return findings;
            }
        };
    let words = |violation: &Violation| {
        let Violation { rule, field, message } = violation.at(&template.places);
        format!("{}: {field}: {message}", rule.0)
    };
    let denied =
        |violation: &Violation| PreflightFinding::new(&rules::WORKLOAD_DENIED, &object, words(violation));
    findings.extend(violations.iter().map(denied));
    findings.extend(
        warnings
            .iter()
            .filter(|warning| warning.rule != admission_rules::OTHER_SCHEDULER)
            .map(|warning| PreflightFinding::new(&rules::WORKLOAD_WARNED, &object, words(warning))),
    );
    findings
}

/// Whether the pods would be Berth's, or a scheduler's that keeps account of shares.
fn unmanaged(examination: &Examination<'_>, template: &Template<'_>) -> Option<PreflightFinding> {
    if !is_unmanaged(examination, &template.pod) {
        return None;
    }
    let name = template.pod.spec.scheduler_name.as_deref().unwrap_or_default();
    let known: Vec<_> = examination.known_schedulers().into_iter().collect();
    let message = format!(
        "{}: {name} is not known to keep account of shares (known: {}): berth-unmanaged.berth.dev warns of the pods, \
         or refuses them with `unmanagedPods: deny`; add it to adoptSchedulers to have Berth place them",
        template.places.of("spec.schedulerName"),
        known.join(", ")
    );
    Some(PreflightFinding::new(&rules::UNMANAGED_WORKLOAD, template.called(), message))
}

/// Whether the pods would wait for a scheduler that does not run.
fn not_there(examination: &Examination<'_>, template: &Template<'_>) -> Option<PreflightFinding> {
    let name = template.pod.spec.scheduler_name.as_deref().unwrap_or_default();
    let adopted = examination.config.adopt_schedulers.iter().any(|adopted| adopted == name);
    let owner = scheduler_name::owner(&template.pod, &examination.facts.settings);
    if owner != scheduler_name::PlacingScheduler::Other || adopted || examination.runs(name) {
        return None;
    }
    let message = format!(
        "{}: no scheduler of the name {name} was found: its pods would wait; change the name to {}, or add it to adoptSchedulers to have Berth \
         place them",
        template.places.of("spec.schedulerName"),
        examination.config.scheduler_name
    );
    Some(PreflightFinding::new(&rules::SCHEDULER_NOT_THERE, template.called(), message))
}

/// Whether a pod that is created so would have a scheduler that is not known.
fn is_unmanaged(examination: &Examination<'_>, pod: &Pod) -> bool {
    let name = pod.spec.scheduler_name.as_deref().unwrap_or_default();
    scheduler_name::owner(pod, &examination.facts.settings) == scheduler_name::PlacingScheduler::Other
        && !examination.known_schedulers().contains(name)
}

/// Whether any template asks for shares under a scheduler that is not known.
pub fn any_is_unmanaged(examination: &Examination<'_>, templates: &[Template<'_>]) -> bool {
    templates.iter().any(|template| is_unmanaged(examination, &template.pod))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{cli::preflight::seen::Seen, config::Config};

    fn deployment(name: &str, spec: &Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "team", "name": name},
            "spec": {"template": {"spec": spec}}})
    }

    fn asking(amounts: &Value, more: &Value) -> Value {
        let mut spec =
            json!({"containers": [{"name": "main", "image": "i", "resources": {"limits": amounts}}]});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec
    }

    fn found(workload: Value) -> Vec<(&'static str, String)> {
        found_among(vec![workload])
    }

    fn found_among(objects: Vec<Value>) -> Vec<(&'static str, String)> {
        found_in(Seen::default(), objects)
    }

    fn found_in(mut seen: Seen, objects: Vec<Value>) -> Vec<(&'static str, String)> {
        for object in objects {
            seen.take(object);
        }
        let config = Config::parse("adoptSchedulers: [batch]", "f").unwrap().0;
        let examination = Examination::new(&seen, &config, "berth-system", jiff::Timestamp::UNIX_EPOCH);
        let (templates, mut findings_of) = templates(&examination);
        findings_of.extend(findings(&examination, &templates));
        findings_of.into_iter().map(|finding| (finding.rule, finding.message)).collect()
    }

    #[test]
    fn a_template_that_a_rule_denies_is_found_with_field_and_rule() {
        let mixed = json!({"nvidia.com/gpu": 1, "volcano.sh/vgpu-number": 1});
        let found = found(deployment("mixed", &asking(&mixed, &json!({}))));
        let (rule, message) = &found[0];
        assert_eq!(*rule, "workload-denied");
        assert!(message.starts_with("mode-conflict: spec.template.spec.containers[0]"), "{message}");
    }

    #[test]
    fn a_group_of_kubernetes_own_api_strands_no_pods() {
        let gpu = json!({"nvidia.com/gpu": 1});
        let group = json!({"schedulingGroup": {"podGroupName": "g"}});
        assert_eq!(found(deployment("gang", &asking(&gpu, &group))), []);
    }

    #[test]
    fn only_schedulers_that_are_not_known_leave_pods_unmanaged() {
        let gpu = json!({"nvidia.com/gpu": 1});
        let named = |name: &str| found(deployment("d", &asking(&gpu, &json!({"schedulerName": name}))));
        assert_eq!(named("other")[0].0, "unmanaged-workload");
        for known in ["berth", "batch", "default-scheduler"] {
            assert_eq!(named(known), [], "{known}");
        }
        for known in ["hami-scheduler", "volcano"] {
            assert_eq!(named(known)[0].0, "scheduler-not-there", "known, and not here");
        }
    }

    #[test]
    fn a_workload_that_names_a_scheduler_which_is_not_there_is_found() {
        let gpu = json!({"nvidia.com/gpu": 1});
        let named = |name: &str| deployment("d", &asking(&gpu, &json!({"schedulerName": name})));
        let hami = |replicas: u32| {
            let container =
                json!({"image": "projecthami/hami", "command": ["scheduler", "--http_bind=0.0.0.0:443"]});
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "kube-system", "name": "s"},
                "spec": {"replicas": replicas, "template": {"spec": {"containers": [container]}}}})
        };
        let bound = |name: &str| json!({"kind": "Pod", "metadata": {"name": "p"}, "spec": {"schedulerName": name, "nodeName": "n"}});
        let is_found =
            |objects: Vec<Value>| found_among(objects).iter().any(|(rule, _)| *rule == "scheduler-not-there");
        assert!(!is_found(vec![named("hami-scheduler"), hami(1)]));
        assert!(is_found(vec![named("hami-scheduler"), hami(0)]), "it is scaled to 0");
        assert!(
            is_found(vec![named("hami-scheduler"), bound("hami-scheduler")]),
            "what it has bound outlives it"
        );
        assert!(is_found(vec![named("other")]));
        assert!(!is_found(vec![named("other"), bound("other")]), "it binds pods");
    }

    #[test]
    fn a_gang_whose_kind_the_cluster_does_not_serve_is_found() {
        let gang = |key: &str, metadata: &str| {
            let mut workload = deployment("gang", &asking(&json!({"nvidia.com/gpu": 1}), &json!({})));
            workload["spec"]["template"]["metadata"][metadata][key] = "g".into();
            workload
        };
        let found = |workload: Value, group: &str, version: &str| {
            let mut seen = Seen::default();
            seen.groups.insert(group.to_owned(), vec![version.to_owned()]);
            found_in(seen, vec![workload])
        };
        let volcano = || gang("scheduling.k8s.io/group-name", "annotations");
        let (rule, message) = &found(volcano(), "apps", "v1")[0];
        assert_eq!(*rule, "gang-without-kind");
        assert!(
            message.contains("PodGroup team/g") && message.contains("scheduling.volcano.sh"),
            "{message}"
        );
        assert_eq!(found(volcano(), "scheduling.volcano.sh", "v1beta1"), []);
        let coscheduling = || gang("scheduling.x-k8s.io/pod-group", "labels");
        assert_eq!(found(coscheduling(), "apps", "v1")[0].0, "gang-without-kind");
        assert_eq!(found(coscheduling(), "scheduling.x-k8s.io", "v1alpha1"), []);
        let kubernetes = || {
            let group = json!({"schedulingGroup": {"podGroupName": "g"}});
            deployment("gang", &asking(&json!({"nvidia.com/gpu": 1}), &group))
        };
        assert_eq!(found(kubernetes(), "scheduling.k8s.io", "v1")[0].0, "gang-without-kind");
        for version in ["v1alpha2", "v1alpha3", "v1beta1"] {
            assert_eq!(found(kubernetes(), "scheduling.k8s.io", version), [], "{version}");
        }
        assert_eq!(found_in(Seen::default(), vec![volcano()]), [], "the groups could not be read");
    }

    #[test]
    fn workloads_without_shares_are_not_judged_and_broken_ones_are_named() {
        let privileged = json!({"containers": [{"name": "c", "securityContext": {"privileged": true}}]});
        assert_eq!(found(deployment("plain", &privileged)), []);
        let (rule, message) = &found(deployment("broken", &json!({"containers": 1})))[0];
        assert_eq!(*rule, "unreadable-object");
        assert!(message.contains("spec.template.spec.containers"), "{message}");
    }
}
