//! Facts as a case writes them down: settings, nodes with cards, namespaces, quotas, groups.

use std::{collections::BTreeMap, sync::Arc};

use berth::{
    admission::{
        Facts, Guards, InventorySummary, NamespaceQuota, NodeOffer, Severity, namespace_quota::HolderStanding,
    },
    config::Config,
    dialect::Dialects,
    object::{Namespace, Node},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// `settings` is a berth.yaml; everything else may be left out.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Given {
    settings: Value,
    guards: BTreeMap<String, String>,
    namespaces: Vec<Namespace>,
    nodes: Option<Vec<GivenNode>>,
    quotas: Vec<GivenQuota>,
    pod_groups: Vec<GivenGroup>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct GivenNode {
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    hami: Vec<GivenCard>,
    #[serde(default)]
    vgpu: Vec<GivenCard>,
    #[serde(default)]
    amd: Vec<GivenCard>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenCard {
    id: String,
    model: String,
    memory: u32,
    /// Percent of compute, or AMD's compute units.
    #[serde(default = "whole")]
    compute: u32,
}

fn whole() -> u32 {
    100
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenQuota {
    namespace: String,
    name: String,
    hard: BTreeMap<String, String>,
    #[serde(default)]
    used: BTreeMap<String, u64>,
    /// Pods that hold some of what is used.
    #[serde(default)]
    pods: Vec<GivenHolder>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenHolder {
    name: String,
    holds: BTreeMap<String, u64>,
    #[serde(default)]
    terminating: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenGroup {
    namespace: String,
    name: String,
    preemptable: Option<String>,
}

impl Given {
    pub(crate) fn facts(&self) -> Facts {
        let text = match &self.settings {
            Value::Null => String::new(),
            settings => serde_saphyr::to_string(settings).unwrap(),
        };
        let (config, _) = Config::parse(&text, "settings").unwrap();
        let mut settings = config.admission_settings();
        for (guard, severity) in &self.guards {
            set(&mut settings.guards, guard, severity);
        }
        let mut facts = Facts::new(settings, config.dialects());
        let named = |namespace: &Namespace| (namespace.metadata.name.clone(), namespace.clone());
        facts.namespaces = Arc::new(self.namespaces.iter().map(named).collect());
        let offers = |nodes: &Vec<GivenNode>| {
            let offers = nodes.iter().map(|node| NodeOffer::read(&node.object(), &facts.dialects));
            Arc::new(InventorySummary::new(offers))
        };
        facts.inventory = self.nodes.as_ref().map(offers);
        facts.quotas = Arc::new(self.quotas(&facts.dialects));
        let group =
            |group: &GivenGroup| ((group.namespace.clone(), group.name.clone()), group.preemptable.clone());
        facts.pod_groups = Arc::new(self.pod_groups.iter().map(group).collect());
        facts
    }

    fn quotas(&self, dialects: &Dialects) -> BTreeMap<String, NamespaceQuota> {
        let mut quotas = BTreeMap::<String, NamespaceQuota>::new();
        for given in &self.quotas {
            let hard = json!({"metadata": {"name": given.name}, "spec": {"hard": given.hard}});
            let quota = quotas.entry(given.namespace.clone()).or_default();
            assert_eq!(quota.limit(&serde_json::from_value(hard).unwrap(), dialects), []);
            quota.charge(&given.used);
            for pod in &given.pods {
                let standing =
                    if pod.terminating { HolderStanding::Terminating } else { HolderStanding::Alive };
                quota.note_holder(&pod.name, standing, &pod.holds);
            }
        }
        quotas
    }
}

fn set(guards: &mut Guards, guard: &str, severity: &str) {
    let severity = match severity {
        "deny" => Severity::Deny,
        "warn" => Severity::Warn,
        "allow" => Severity::Allow,
        other => panic!("no severity: {other}"),
    };
    let guard = match guard {
        "neverFits" => &mut guards.never_fits,
        "presetNode" => &mut guards.preset_node,
        "privileged" => &mut guards.privileged,
        "deviceMounts" => &mut guards.device_mounts,
        "visibleDevices" => &mut guards.visible_devices,
        "quota" => &mut guards.quota,
        other => panic!("no guard: {other}"),
    };
    *guard = severity;
}

impl GivenNode {
    fn object(&self) -> Node {
        let mut annotations = BTreeMap::new();
        let registers =
            [("hami.io/node-nvidia-register", &self.hami), ("hami.io/node-amd-register", &self.amd)];
        for (key, cards) in registers.into_iter().filter(|(_, cards)| !cards.is_empty()) {
            let card = |(index, card): (usize, &GivenCard)| {
                json!({
                    "id": card.id, "index": index, "count": 10, "devmem": card.memory, "devcore": card.compute,
                    "type": card.model, "mode": "hami-core", "health": true,
                })
            };
            let cards: Vec<_> = cards.iter().enumerate().map(card).collect();
            annotations.insert(key, Value::Array(cards).to_string());
        }
        if !self.vgpu.is_empty() {
            let card =
                |card: &GivenCard| format!("{},10,{},{},true,hami-core:", card.id, card.memory, card.model);
            annotations.insert("volcano.sh/node-vgpu-register", self.vgpu.iter().map(card).collect());
        }
        let metadata = json!({"name": self.name, "labels": self.labels, "annotations": annotations});
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }
}
