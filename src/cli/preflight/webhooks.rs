//! Mutating webhooks of HAMi and Volcano that change pods: which namespaces they cover, and how they are switched off and on again.

use serde_json::{Value, json};

use super::{
    finding::{PreflightFinding, called},
    program::{Part, Project},
    release::Release,
    rules,
    seen::{Seen, text},
    shell::quoted,
};
use crate::dialect::hami::names;

/// HAMi's webhook (HAMi v2.10 `charts/hami/templates/scheduler/webhook.yaml`).
const HAMI: &str = "vgpu.hami.io";
/// What the names of Volcano's webhooks end with (`installer/helm/chart/volcano/templates/webhooks.yaml`).
const VOLCANO: &str = ".volcano.sh";
/// The label that holds a namespace's name.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// One webhook of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenWebhook {
    /// Whose it is.
    pub project: Project,
    /// Its name.
    pub name: String,
    /// The configuration's name.
    pub configuration: String,
    /// Its place in the configuration.
    pub place: usize,
    /// Which namespaces it covers.
    pub covers: Covers,
    /// Its rules, as they stand.
    pub rules: Value,
    /// The release of Helm's that it belongs to.
    pub release: Option<Release>,
    failure_policy: String,
    reinvocation_policy: String,
}

/// Which namespaces a webhook covers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Covers {
    /// All that do not opt out by HAMi's label, except these by name.
    AllExcept(Vec<String>),
    /// Those that a selector chooses.
    Chosen,
}

/// The webhooks of HAMi and Volcano that are asked about pods and are switched on.
pub fn webhooks(seen: &Seen) -> Vec<SeenWebhook> {
    let mut found = Vec::new();
    for configuration in &seen.webhooks {
        let webhooks = configuration.get("webhooks").and_then(Value::as_array);
        for (place, webhook) in webhooks.into_iter().flatten().enumerate() {
            let Some(project) = project(webhook, seen).filter(|_| is_asked_about_pods(webhook)) else {
                continue;
            };
            found.push(SeenWebhook {
                project,
                name: text(webhook, "/name").to_owned(),
                configuration: text(configuration, "/metadata/name").to_owned(),
                place,
                covers: covers(webhook),
                rules: webhook["rules"].clone(),
                release: Release::of(configuration),
                failure_policy: text(webhook, "/failurePolicy").to_owned(),
                reinvocation_policy: text(webhook, "/reinvocationPolicy").to_owned(),
            });
        }
    }
    found
}

fn project(webhook: &Value, seen: &Seen) -> Option<Project> {
    let name = text(webhook, "/name");
    if name.ends_with(VOLCANO) {
        return Some(Project::Volcano);
    }
    let service = |key: &str| text(webhook, &format!("/clientConfig/service/{key}"));
    let serves = |program: &&super::program::Program| {
        program.part == Part::Scheduler
            && program.project == Project::Hami
            && (program.namespace.as_str(), program.name.as_str()) == (service("namespace"), service("name"))
    };
    (name == HAMI || seen.programs.iter().any(|program| serves(&program))).then_some(Project::Hami)
}

fn is_asked_about_pods(webhook: &Value) -> bool {
    let rules = webhook.get("rules").and_then(Value::as_array);
    let names_pods = |rule: &Value| {
        let resources = rule.get("resources").and_then(Value::as_array);
        resources
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .any(|name| matches!(name, "pods" | "*" | "*/*"))
    };
    rules.into_iter().flatten().any(names_pods)
}

fn covers(webhook: &Value) -> Covers {
    let labels = webhook.pointer("/namespaceSelector/matchLabels").and_then(Value::as_object);
    let requirements = webhook.pointer("/namespaceSelector/matchExpressions").and_then(Value::as_array);
    if labels.is_some_and(|labels| !labels.is_empty()) {
        return Covers::Chosen;
    }
    let mut except = Vec::new();
    for requirement in requirements.into_iter().flatten() {
        let values = requirement.get("values").and_then(Value::as_array).into_iter().flatten();
        match (text(requirement, "/key"), text(requirement, "/operator")) {
            (names::OPT_OUT, "NotIn") => {}
            (NAMESPACE_NAME, "NotIn") => except.extend(values.filter_map(Value::as_str).map(str::to_owned)),
            _ => return Covers::Chosen,
        }
    }
    Covers::AllExcept(except)
}

impl SeenWebhook {
    /// The command that takes all its rules away.
    pub fn switch_off(&self) -> String {
        self.patched(&json!([]))
    }

    /// The command that puts its rules back as they stand.
    pub fn switch_on(&self) -> String {
        self.patched(&self.rules)
    }

    fn patched(&self, rules: &Value) -> String {
        let field = format!("/webhooks/{}/rules", self.place);
        let patch = json!([{"op": "replace", "path": field, "value": rules}]).to_string();
        format!(
            "kubectl patch mutatingwebhookconfiguration {} --type=json -p {}",
            self.configuration,
            quoted(&patch)
        )
    }

    fn finding(&self) -> PreflightFinding {
        let whom = match &self.covers {
            Covers::AllExcept(names) if names.is_empty() => {
                format!("every namespace that is not labelled `{}: ignore`", names::OPT_OUT)
            }
            Covers::AllExcept(except) => {
                format!(
                    "every namespace that is not labelled `{}: ignore`, except {}",
                    names::OPT_OUT,
                    except.join(", ")
                )
            }
            Covers::Chosen => "the namespaces that its selector chooses".to_owned(),
        };
        let closed = match self.failure_policy.as_str() {
            "Fail" if self.project == Project::Hami => {
                "; with failurePolicy Fail no pod can be created there once its scheduler is stopped: switch it off first"
            }
            _ => "",
        };
        let message = format!(
            "webhook {} of {} changes pods of {whom} (failurePolicy {}, reinvocationPolicy {}){closed}",
            self.name,
            self.project.name(),
            self.failure_policy,
            self.reinvocation_policy,
        );
        let object = called("MutatingWebhookConfiguration", "", &self.configuration);
        let finding = PreflightFinding::new(&rules::FOREIGN_WEBHOOK, object, message);
        // Volcano's serves its own jobs too, and stays.
        if self.project == Project::Hami { finding.with_command(self.switch_off()) } else { finding }
    }
}

/// One finding for each.
pub fn findings(seen: &Seen) -> Vec<PreflightFinding> {
    webhooks(seen).iter().map(SeenWebhook::finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(selector: &Value, resources: &Value) -> Seen {
        let mut seen = Seen::default();
        seen.take(json!({"kind": "MutatingWebhookConfiguration", "metadata": {"name": "hami-webhook"}, "webhooks": [{
            "name": "vgpu.hami.io", "failurePolicy": "Ignore", "reinvocationPolicy": "Never", "namespaceSelector": selector,
            "rules": [{"resources": resources}],
        }]}));
        seen
    }

    #[test]
    fn the_namespaces_of_a_webhook_are_read_from_its_selector() {
        let ignored = json!({"key": "hami.io/webhook", "operator": "NotIn", "values": ["ignore"]});
        let named = json!({"key": NAMESPACE_NAME, "operator": "NotIn", "values": ["kube-system", "tools"]});
        let chosen = json!({"key": "gpu", "operator": "In", "values": ["on"]});
        let except = |names: &[&str]| Covers::AllExcept(names.iter().map(|&name| name.to_owned()).collect());
        let cases = [
            (json!({"matchExpressions": [ignored]}), except(&[])),
            (json!({"matchExpressions": [ignored, named]}), except(&["kube-system", "tools"])),
            (json!({"matchExpressions": [ignored, chosen]}), Covers::Chosen),
            (json!({"matchLabels": {"gpu": "on"}}), Covers::Chosen),
            (Value::Null, except(&[])),
        ];
        for (selector, expected) in cases {
            assert_eq!(webhooks(&seen(&selector, &json!(["pods"])))[0].covers, expected, "{selector}");
        }
    }

    #[test]
    fn a_webhook_without_rules_for_pods_is_off() {
        assert!(webhooks(&seen(&Value::Null, &json!(["jobs"]))).is_empty());
        let mut off = seen(&Value::Null, &json!(["pods"]));
        off.webhooks[0]["webhooks"][0]["rules"] = json!([]);
        assert!(webhooks(&off).is_empty());
    }

    #[test]
    fn it_is_switched_on_again_with_the_rules_that_it_had() {
        let webhook = &webhooks(&seen(&Value::Null, &json!(["pods"])))[0];
        let patch = r#"'[{"op":"replace","path":"/webhooks/0/rules","value":[{"resources":["pods"]}]}]'"#;
        assert!(webhook.switch_on().ends_with(patch), "{}", webhook.switch_on());
        assert!(webhook.switch_off().ends_with(r#""value":[]}]'"#), "{}", webhook.switch_off());
    }
}
