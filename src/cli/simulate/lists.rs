//! What the scheduler of a simulation lists: the objects of the input, as the live binder reads them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::input::SimulationInput;
use crate::{
    cluster::{Reader, read::devices},
    dialect::Unreadable,
    dra::ExtendedResources,
    object::ResourceClaim,
    scheduling::{
        Uid,
        model::{claim_use::DeviceClaims, kind::TaintRuleVersion},
        world::{object::Object, resource_claims::unreadable},
    },
    simulation::ClusterLists,
};

/// The lists of a simulation, to which the pods that want a place are added.
pub(super) struct SimulationLists {
    /// What is listed.
    pub(super) lists: ClusterLists,
    /// Claims of devices by namespace and name.
    pub(super) claims: BTreeMap<(String, String), Arc<ResourceClaim>>,
    /// For which extended resources classes of devices stand.
    pub(super) extended: ExtendedResources,
    /// The places in the input of the pods that want a place.
    pub(super) positions: HashMap<Uid, u64>,
    /// What could not be read.
    pub(super) warnings: Vec<String>,
}

impl SimulationLists {
    /// Reads everything but the pods that want a place.
    pub(super) fn read(input: &SimulationInput, reader: &Reader, served: DeviceClaims) -> Self {
        let mut lists = Self {
            lists: ClusterLists::default(),
            claims: BTreeMap::new(),
            extended: ExtendedResources::default(),
            positions: HashMap::new(),
            warnings: Vec::new(),
        };
        if served == DeviceClaims::Served {
            lists.add_device_claims(input);
        }
        lists.add_nodes(input, reader);
        for (pod, called) in &input.state {
            let (info, troubles) = reader.pod(pod);
            lists.warn(called, &troubles);
            lists.lists.pods.push(info);
        }
        lists.lists.objects.extend(input.objects.iter().cloned());
        for (quota, called) in &input.quotas {
            let (info, troubles) = reader.quota(quota);
            lists.warn(called, &troubles);
            lists.lists.quotas.push(info);
        }
        lists
    }

    /// Everything that is listed, the claims among it.
    pub(super) fn into_lists(self) -> ClusterLists {
        let mut lists = self.lists;
        lists.objects.extend(self.claims.into_values().map(Object::ResourceClaim));
        lists
    }

    /// Says what could not be read of an object.
    pub(super) fn warn(&mut self, called: &str, troubles: &[Unreadable]) {
        self.warnings.extend(troubles.iter().map(|trouble| format!("{called}: {trouble}")));
    }

    fn add_nodes(&mut self, input: &SimulationInput, reader: &Reader) {
        self.lists.objects.extend(input.templates.clone());
        // Of a node that is in the input twice, the last document counts.
        let mut nodes = BTreeMap::new();
        for (node, called) in &input.nodes {
            let (info, troubles) = reader.node(node);
            self.warn(called, &troubles);
            if let Some((device, called)) = input.devices.get(&node.metadata.name) {
                let (offer, troubles) = devices(device);
                self.warn(called, &troubles);
                self.lists.objects.push(Object::Device(info.name.clone(), Arc::new(offer)));
            }
            nodes.insert(info.name.clone(), info);
        }
        self.lists.nodes = nodes.into_values().collect();
    }

    /// Takes in what decides on claims, and what claims hold.
    fn add_device_claims(&mut self, input: &SimulationInput) {
        let objects = &input.claims;
        self.lists.objects.extend(objects.slices.iter().cloned().map(Object::ResourceSlice));
        let rules = objects.taint_rules.iter().cloned();
        self.lists.objects.extend(rules.map(|rule| Object::DeviceTaintRule(TaintRuleVersion::V1, rule)));
        for class in &objects.classes {
            self.extended.set(class);
            self.lists.objects.push(Object::DeviceClass(class.clone()));
        }
        for (claim, called) in &objects.claims {
            let unread = claim.status.allocation.as_ref().map(unreadable).unwrap_or_default();
            self.warnings.extend(unread.into_iter().map(|trouble| format!("{called}: {trouble}")));
            let names = (claim.metadata.namespace.clone(), claim.metadata.name.clone());
            self.claims.insert(names, Arc::new(claim.clone()));
        }
    }
}
