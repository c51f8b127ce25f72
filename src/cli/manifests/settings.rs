//! What `berth.yaml` changes in the objects: names in expressions, the scope, the actions of the policies, and the ConfigMap.
//!
//! The files hold the built-in names; nothing is added here that they do not have a place for.

use std::{collections::BTreeSet, path::Path};

use serde_json::{Value, json};

use super::agent::Account;
use crate::{
    config::{
        AdmissionScope, Authentication, Config, ConfigError, Notice, Protection, UnmanagedPods,
        WorkloadConfig,
    },
    device::ProfileName,
    dialect::{Dialects, HintKeys, SharingMode, schedulers, vendor::hygon},
    object::pod::DEFAULT_SCHEDULER,
};

/// The policy that `unmanagedPods` sets.
pub(super) const UNMANAGED_POLICY: &str = "berth-unmanaged.berth.dev";

/// The policies that `protection` sets.
const PROTECTION_POLICIES: [&str; 2] = ["berth-assignments.berth.dev", "berth-nodes.berth.dev"];

/// The webhook that is asked about workloads of other projects.
const CUSTOM_WORKLOADS: &str = "custom-workload.berth.dev";

/// The role of the webhook.
const WEBHOOK_ROLE: &str = "berth:webhook";

/// What the names of Koordinator's resources begin with.
const KOORDINATOR: &str = "koordinator.sh/";

/// No resource's name begins so.
const NO_NAME: &str = "-";

/// The hint beside which other vendors' hints stand.
const LAST_HINT: &str = "hygon.com/nouse-gpuuuid";

/// The label by which a namespace comes in, or stays out.
const ADMISSION: &str = "berth.dev/admission";

/// The settings to install with.
#[derive(Clone, Debug, Default)]
pub struct InstallationSettings {
    config: Config,
    /// The file's own text; the built-in file's where there is none.
    text: Option<String>,
}

impl InstallationSettings {
    /// Reads a file, and tells what of it has no effect.
    pub fn load(file: &Path) -> Result<(Self, Vec<Notice>), ConfigError> {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file)
            .map_err(|reason| ConfigError::Unreadable { file: name.clone(), reason })?;
        Self::parse(text, &name)
    }

    /// Reads the text of a file of this name, and tells what of it has no effect.
    pub fn parse(text: String, file: &str) -> Result<(Self, Vec<Notice>), ConfigError> {
        let (config, notices) = Config::parse(&text, file)?;
        Ok((Self { config, text: Some(text) }, notices))
    }

    /// The settings themselves.
    #[cfg(test)]
    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// Makes an object follow the settings; `agents` are the accounts that the manifests let write assignments.
    pub(super) fn apply(&self, object: &mut Value, agents: &[Account]) {
        if object["kind"] == "ValidatingAdmissionPolicyBinding" {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let actions = match name {
                UNMANAGED_POLICY => Some(json!([self.unmanaged()])),
                name if PROTECTION_POLICIES.contains(&name) => Some(self.protection(agents)),
                _ => None,
            };
            if let Some(actions) = actions {
                object["spec"]["validationActions"] = actions;
            }
        }
        if let (Some(text), Some(kept)) = (&self.text, object.pointer_mut("/data/berth.yaml")) {
            *kept = text.as_str().into();
        }
        self.extend_workloads(object);
        if object["kind"] == "ClusterRole" {
            self.keep_to_features(object);
        }
        let is_webhooks = object["kind"] == "ClusterRole" && object["metadata"]["name"] == WEBHOOK_ROLE;
        if is_webhooks && self.config.metrics.authentication == Authentication::Token {
            allow_reviews(object);
        }
        let renamed = self.renamed();
        walk(object, &|fields| {
            let name = fields.get("name").and_then(Value::as_str);
            let list = match name.filter(|_| fields.contains_key("expression")) {
                Some("schedulers") => Some(self.schedulers()),
                Some("agents") => Some(usernames(agents)),
                _ => None,
            };
            if let Some(list) = list {
                fields["expression"] = list.into();
            } else if let Some(Value::String(expression)) = fields.get_mut("expression") {
                *expression = with_literals(expression, &renamed);
            }
            if self.config.scope == AdmissionScope::OptOut && fields.get("key") == Some(&json!(ADMISSION)) {
                opt_out(fields);
            }
        });
    }

    /// Takes the rights out of a role that only features need that are off.
    fn keep_to_features(&self, role: &mut Value) {
        let scheduling = &self.config.scheduling;
        let rights = [
            (scheduling.preemption.enabled, json!(["pods"]), json!(["delete"])),
            (self.config.evicts(), json!(["pods/eviction"]), json!(["create"])),
        ];
        if let Some(rules) = role["rules"].as_array_mut() {
            let is_off = |rule: &Value| {
                rights.iter().any(|(on, resources, verbs)| {
                    !on && rule["resources"] == *resources && rule["verbs"] == *verbs
                }) || !scheduling.claims.enabled && rule["apiGroups"] == json!(["resource.k8s.io"])
            };
            rules.retain(|rule| !is_off(rule));
        }
    }

    /// Adds the kinds of the settings to the rules of the webhook for workloads.
    fn extend_workloads(&self, object: &mut Value) {
        let webhooks = object.get_mut("webhooks").and_then(Value::as_array_mut);
        let Some(webhook) =
            webhooks.into_iter().flatten().find(|webhook| webhook["name"] == CUSTOM_WORKLOADS)
        else {
            return;
        };
        let rule = |kind: &WorkloadConfig| {
            json!({
                "apiGroups": [kind.api_group],
                "apiVersions": ["*"],
                "operations": ["CREATE", "UPDATE"],
                "resources": [kind.plural],
                "scope": "Namespaced",
            })
        };
        if let Some(rules) = webhook["rules"].as_array_mut() {
            rules.extend(self.config.workloads.iter().map(rule));
        }
    }

    /// The action of the policy on share pods that no known scheduler of shares serves.
    fn unmanaged(&self) -> &'static str {
        match self.config.unmanaged_pods {
            UnmanagedPods::Warn => "Warn",
            UnmanagedPods::Deny => "Deny",
            UnmanagedPods::Allow => "Audit",
        }
    }

    /// The actions of the policies on assignments, locks and lists of cards.
    fn protection(&self, agents: &[Account]) -> Value {
        match self.config.protection {
            // Without the right, a device plugin could not serve a pod.
            Protection::Auto if agents.is_empty() => json!(["Warn", "Audit"]),
            Protection::Warn => json!(["Warn", "Audit"]),
            Protection::Auto | Protection::Deny => json!(["Deny"]),
        }
    }

    /// The schedulers of shares, ours first, as a CEL list. One that is adopted is one, unless it is known not to be.
    fn schedulers(&self) -> String {
        let adopted = self.config.adopt_schedulers.iter().map(String::as_str);
        let mut names = vec![self.config.scheduler_name.as_str()];
        for name in schedulers::NAMES.into_iter().chain(adopted.filter(|name| *name != DEFAULT_SCHEDULER)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        cel_list(names)
    }

    /// The built-in names that have another one now, or others beside them.
    fn renamed(&self) -> Vec<(String, String)> {
        let names = |config: &Config| {
            let hami = &config.dialects.hami;
            let hygon = hami.vendors.hygon.resources();
            [
                config.scheduler_name.clone(),
                hami.resource_count_name.clone(),
                hami.resource_memory_name.clone(),
                hami.resource_memory_percentage_name.clone(),
                hami.resource_core_name.clone(),
                hami.resource_priority_name.clone(),
            ]
            .into_iter()
            .chain(hygon.all().map(str::to_owned))
            .collect::<Vec<_>>()
        };
        let pairs = names(&Config::default()).into_iter().zip(names(&self.config));
        let mut renamed: Vec<_> = pairs.filter(|(before, after)| before != after).collect();
        renamed.extend(self.vendors());
        if !self.config.dialects.koordinator.enabled {
            renamed.push((KOORDINATOR.to_owned(), NO_NAME.to_owned()));
        }
        renamed
    }

    /// What the vendors add that are not served by default, and whole cards where they are Koordinator's: their resources beside Hygon's count, their
    /// hints beside Hygon's.
    fn vendors(&self) -> [(String, String); 2] {
        let by_default = |dialects: Dialects| -> BTreeSet<ProfileName> {
            dialects.iter().map(|dialect| dialect.name().clone()).collect()
        };
        let known = by_default(Config::default().dialects());
        let dialects = self.config.dialects();
        let more = || {
            let vendors = dialects.iter().filter(|dialect| matches!(dialect.mode(), SharingMode::Vendor(_)));
            vendors.filter(|dialect| !known.contains(dialect.name()))
        };
        let hygon = self.config.dialects.hami.vendors.hygon.resource_count_name.as_str();
        let mut resources: Vec<_> =
            std::iter::once(hygon).chain(more().flat_map(|dialect| dialect.resources())).collect();
        // The count of HAMi's shares stands in the files, whatever it is called.
        let count_of_hami = self.config.dialects.hami.resource_count_name.as_str();
        for whole in dialects.iter().flat_map(|dialect| dialect.whole_cards()) {
            if whole != count_of_hami && !resources.contains(&whole) {
                resources.push(whole);
            }
        }
        let hints = std::iter::once(LAST_HINT)
            .chain(more().flat_map(|dialect| dialect.hint_keys().into_iter().flat_map(HintKeys::all)));
        let among = |names: Vec<&str>| names.join("', '");
        let count = hygon::resources().count;
        [(count, among(resources)), (LAST_HINT.to_owned(), among(hints.collect()))]
    }
}

/// The users that these accounts are to the API server, as a CEL list.
fn usernames(agents: &[Account]) -> String {
    let username =
        |account: &Account| format!("system:serviceaccount:{}:{}", account.namespace, account.name);
    cel_list(agents.iter().map(username))
}

/// Texts in which nothing is to be escaped, as a CEL list.
fn cel_list(texts: impl IntoIterator<Item: std::fmt::Display>) -> String {
    let quoted: Vec<String> = texts.into_iter().map(|text| format!("'{text}'")).collect();
    format!("[{}]", quoted.join(", "))
}

/// The expression with each string literal in its new name. The files write literals in single quotes and escape nothing.
fn with_literals(expression: &str, renamed: &[(String, String)]) -> String {
    let new = |literal: &str| {
        // Of two that begin from one name the later says more.
        let pair = renamed.iter().rfind(|(before, _)| before == literal);
        pair.map_or_else(|| literal.to_owned(), |(_, after)| after.clone())
    };
    let parts = expression.split('\'').enumerate();
    let parts = parts.map(|(at, part)| if at % 2 == 1 { new(part) } else { part.to_owned() });
    parts.collect::<Vec<_>>().join("'")
}

/// A requirement that a namespace be labelled becomes one that it not be labelled otherwise.
fn opt_out(requirement: &mut serde_json::Map<String, Value>) {
    if requirement.get("values") == Some(&json!(["enabled"])) {
        requirement["operator"] = "NotIn".into();
        requirement["values"] = json!(["ignore"]);
    }
}

/// Shows every mapping below `value`, and itself, to `change`.
fn walk(value: &mut Value, change: &impl Fn(&mut serde_json::Map<String, Value>)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, change)),
        Value::Object(fields) => {
            change(fields);
            fields.values_mut().for_each(|field| walk(field, change));
        }
        _ => {}
    }
}

/// Lets a role have tokens checked, and ask what their users may do.
fn allow_reviews(role: &mut Value) {
    let reviews =
        [("authentication.k8s.io", "tokenreviews"), ("authorization.k8s.io", "subjectaccessreviews")];
    if let Some(rules) = role["rules"].as_array_mut() {
        let create =
            |(group, resource)| json!({"apiGroups": [group], "resources": [resource], "verbs": ["create"]});
        rules.extend(reviews.map(create));
    }
}

#[cfg(test)]
mod tests;
