//! One call of HAMi's fit as a walk of Berth's over the same cards in the same order.

use berth::{
    device::{
        CardId, CardPolicy, CoreRequest, Cores, Health, Inventory, Links, Marks, MiB, NodePolicy, Percent,
        PodRequest, Quota, Role, Selection, ShareRequest,
    },
    dialect::{Dialect, hami::names},
    scheduling::{
        DeviceReason,
        plugin::{
            allocate::{CardScene, HeldByPod, walk::walk},
            rejection::Rejection,
        },
    },
};
use serde_json::{Value, json};

use super::upstream::{card, hami, list, number, pod_of, request, text, usage};

/// What a fit is called with.
pub(crate) struct Call<'a> {
    /// `DeviceUsage`s; upstream tries the last first.
    pub(crate) devices: Vec<&'a Value>,
    /// `ContainerDeviceRequest`.
    pub(crate) request: &'a Value,
    /// The pod's.
    pub(crate) annotations: &'a Value,
    /// The node's.
    pub(crate) node: &'a Value,
    /// For each card its links.
    pub(crate) links: Links,
    /// What the namespace may still take.
    pub(crate) quota: Quota,
    /// What earlier containers hold.
    pub(crate) held: HeldByPod,
}

/// Card, memory, percent of each share; or the reasons as HAMi words them.
pub(crate) type Outcome = Result<Vec<(String, u64, u32)>, String>;

impl Call<'_> {
    /// Berth's answer.
    pub(crate) fn outcome(self) -> Outcome {
        let inventory = self.inventory().with_links(self.links.clone());
        self.outcome_on(&hami(), &json!({names::COUNT: "1"}), &inventory)
    }

    /// The answer of a dialect in which these limits ask for one card, on these cards.
    pub(crate) fn outcome_on(self, dialect: &dyn Dialect, limits: &Value, inventory: &Inventory) -> Outcome {
        let ask = request(self.request).expect("a fit asks for at least one card");
        let cores = CoreRequest::stated(Percent::new(ask.cores.get()), dialect.profile().core_budget);
        let ask = ShareRequest { cores, ..ask };
        let pod = pod_of(self.annotations, limits);
        let asked = dialect.request(&pod, berth::dialect::MissingCount::Refuse).unwrap().unwrap();
        let given: Vec<Value> = self.devices.iter().map(|&device| device.clone()).collect();
        let usage = usage(&given);
        let scene = CardScene {
            request: &asked,
            inventory,
            usage: &usage,
            profile: dialect.profile(),
            quota: self.quota,
            held: self.held,
            first: None,
        };
        walked(&scene, ask, self.devices.iter().rev().map(|device| text(device, "ID")))
    }

    fn inventory(&self) -> Inventory {
        let cordoned: Vec<_> = text(self.node, names::CORDON).split(',').map(str::trim).collect();
        let mut cards: Vec<_> = self.devices.iter().map(|device| card(device)).collect();
        for card in &mut cards {
            if card.health == Health::Healthy && cordoned.contains(&card.id.as_str()) {
                card.health = Health::Cordoned;
            }
        }
        Inventory::new(cards)
    }
}

fn walked<'a>(scene: &CardScene<'_>, ask: ShareRequest, order: impl Iterator<Item = &'a str>) -> Outcome {
    let find = |id: &str| scene.inventory.cards().iter().find(|card| card.id.as_str() == id).unwrap();
    let cards: Vec<_> = order.map(find).map(|card| (card, scene.in_use(card))).collect();
    let shares = walk(scene, Role::App, ask, &cards).map_err(|reasons| words(&reasons))?;
    Ok(shares.iter().map(|share| (share.card.to_string(), share.memory.get(), share.cores.get())).collect())
}

/// Reasons as HAMi words them: `<count>/<cards> <reason>`, sorted.
pub(crate) fn words(reasons: &[DeviceReason]) -> String {
    let mut words: Vec<_> = reasons.iter().map(word).collect();
    words.sort();
    words.join(", ")
}

fn word(reason: &DeviceReason) -> String {
    match reason.cards() {
        Some((count, of)) => format!("{count}/{of} {}", reason.name()),
        None => reason.name().into_owned(),
    }
}

/// `ContainerDevice`s as an outcome's shares.
pub(crate) fn devices(devices: &Value) -> Vec<(String, u64, u32)> {
    let share = |device: &Value| {
        (text(device, "UUID").to_owned(), number(device, "Usedmem").into(), number(device, "Usedcores"))
    };
    list(devices).iter().map(share).collect()
}

/// Pair scores, where the key `id` names a card and `scores` the others.
pub(crate) fn links(pairs: &[&Value]) -> Links {
    let of = |pair: &Value| -> Vec<(CardId, CardId, i64)> {
        let others = pair["Scores"].as_object().into_iter().flatten();
        let link = |(other, score): (&String, &Value)| {
            (text(pair, "ID").into(), other.into(), score.as_i64().unwrap())
        };
        others.map(link).collect()
    };
    pairs.iter().flat_map(|pair| of(pair)).collect()
}

/// What earlier containers of the pod hold; the first so many are init containers.
pub(crate) fn held(allocated: &Value, init: usize) -> HeldByPod {
    let mut held = HeldByPod::default();
    for (at, container) in list(&allocated["NVIDIA"]).iter().enumerate() {
        let role = if at < init { Role::Init } else { Role::App };
        let shares: Vec<_> = list(container).iter().map(super::upstream::share).collect();
        held.take(role, &shares);
    }
    held
}

/// What the namespace may still take, out of HAMi's cache of quotas.
pub(crate) fn quota(cache: &Value, namespace: &str) -> Quota {
    let mut quota = Quota::default();
    for (resource, state) in cache[namespace].as_object().into_iter().flatten() {
        let left = number(state, "Limit").saturating_sub(number(state, "Used"));
        match resource.rsplit('/').next() {
            _ if state["LimitSet"] != json!(true) => {}
            Some("gpumem") => quota.memory = Some(MiB::new(left.into())),
            Some("gpucores") => quota.cores = Some(Cores::new(left)),
            other => panic!("no quota {other:?}"),
        }
    }
    quota
}

/// A pod that asks nothing of its cards beyond a policy.
pub(crate) fn plain(policy: CardPolicy) -> PodRequest {
    PodRequest {
        containers: vec![],
        selection: Selection::default(),
        choice: policy.into(),
        node_policy: NodePolicy::Binpack,
        marks: Marks::default(),
        shuns: Marks::default(),
    }
}
