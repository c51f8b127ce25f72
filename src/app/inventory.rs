//! The cards that the admission rules know: from the binder's view, or, in a process without a binder, from a watch.
//!
//! It knows the cards, not their use, and nothing before all nodes are listed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kube::Client;
use tokio::sync::watch;

use crate::{
    admission::{InventorySummary, NodeOffer},
    cluster::{
        BinderView,
        informer::keep::{ObjectKey, keep, keep_if_served},
        read::{self, by_class::modes_by_class},
    },
    dialect::Dialects,
    object::{Device, DeviceClass, Node},
    scheduling::{
        NodeInfo, Offer,
        model::{claim_use::DeviceClaims, extended_resources::ExtendedResources},
    },
};

/// What is known of nodes; `None` before they are listed.
type Nodes = Option<BTreeMap<ObjectKey, Arc<NodeOffer>>>;
/// What their Devices offer.
type Devices = BTreeMap<ObjectKey, Offer>;
/// The classes of devices.
type Classes = BTreeMap<ObjectKey, DeviceClass>;

/// Watches the nodes, their Devices and, where claims are served, the classes of devices, and publishes their summary when a card, a device, a name or a
/// zone changes; never returns.
pub(super) async fn watched(
    client: &Client,
    claims: DeviceClaims,
    dialects: impl Fn() -> Dialects + Send + Sync,
    publish: impl Fn(InventorySummary) + Send + Sync,
) {
    let (seen, mut changes) =
        watch::channel::<(Nodes, Devices, Classes)>((None, Devices::new(), Classes::new()));
    let read = |node: &Node| Arc::new(NodeOffer::read(node, &dialects()));
    let nodes = keep(client, read, |known| seen.send_modify(|(nodes, ..)| *nodes = Some(known.clone())));
    let read = |device: &Device| read::devices(device).0;
    let devices = keep_if_served(client, read, |known| seen.send_modify(|(_, all, _)| all.clone_from(known)));
    let classes = async {
        if claims == DeviceClaims::Served {
            let seen = |known: &Classes| seen.send_modify(|(.., all)| all.clone_from(known));
            keep_if_served(client, DeviceClass::clone, seen).await;
        }
    };
    let sum = async {
        while changes.changed().await.is_ok() {
            let (nodes, devices, classes) = &*changes.borrow_and_update();
            if let Some(nodes) = nodes {
                let mut stand_for = ExtendedResources::default();
                for class in classes.values() {
                    stand_for.set(class);
                }
                let served = modes_by_class(&dialects(), &stand_for);
                publish(summary(nodes, devices, &dialects()).serving_by_class(served));
            }
        }
    };
    tokio::join!(nodes, devices, classes, sum);
}

/// All nodes, each with its cards and with what its Device offers.
fn summary(
    nodes: &BTreeMap<ObjectKey, Arc<NodeOffer>>,
    devices: &Devices,
    dialects: &Dialects,
) -> InventorySummary {
    let with_devices = |(key, node): (&ObjectKey, &Arc<NodeOffer>)| {
        let offer = devices.get(key);
        let mode = offer.and_then(|offer| Some(dialects.named(&offer.profile)?.mode().clone()));
        match mode.zip(offer.and_then(|offer| offer.inventory.clone())) {
            Some((mode, inventory)) => NodeOffer::clone(node).with(mode, inventory).into(),
            None => node.clone(),
        }
    };
    InventorySummary::new(nodes.iter().map(with_devices))
}

/// Follows the binder's view of the nodes and publishes as [`watched`] does; never returns.
pub(super) async fn seen(
    mut views: watch::Receiver<Option<BinderView>>,
    publish: impl Fn(InventorySummary) + Send,
) {
    let mut known: Option<KnownInventory> = None;
    loop {
        let view = views.borrow_and_update().clone();
        if let Some(view) = view {
            let first = known.is_none();
            let known = known.get_or_insert_default();
            if known.take_in(&view) || first {
                publish(known.summary(view.reader.dialects()));
            }
        }
        if views.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}

/// What the rules read of the binder's view.
#[derive(Default)]
struct KnownInventory {
    /// What each node offers, with the state that it was read from.
    nodes: BTreeMap<Arc<str>, (Arc<NodeInfo>, Arc<NodeOffer>)>,
    classes: Arc<ExtendedResources>,
}

impl KnownInventory {
    /// Takes over the binder's view; returns whether a node was added, was removed or offers something else, or a class of devices has changed.
    fn take_in(&mut self, view: &BinderView) -> bool {
        let classes = view.outlook.extended_resources();
        let mut differs = *classes != self.classes;
        self.classes = classes.clone();
        for info in view.outlook.nodes() {
            match self.nodes.get_mut(&info.name) {
                Some((read, _)) if Arc::ptr_eq(read, info) => {}
                Some((read, known)) => {
                    let offer = offer(info, view.reader.dialects());
                    differs |= **known != offer;
                    (*read, *known) = (info.clone(), offer.into());
                }
                None => {
                    let offer = offer(info, view.reader.dialects());
                    self.nodes.insert(info.name.clone(), (info.clone(), offer.into()));
                    differs = true;
                }
            }
        }
        if self.nodes.len() > view.outlook.nodes().count() {
            let there: BTreeSet<_> = view.outlook.nodes().map(|info| &info.name).collect();
            self.nodes.retain(|name, _| there.contains(name));
            differs = true;
        }
        differs
    }

    fn summary(&self, dialects: &Dialects) -> InventorySummary {
        let offers = self.nodes.values().map(|(_, offer)| offer.clone());
        InventorySummary::new(offers).serving_by_class(modes_by_class(dialects, &self.classes))
    }
}

/// A node in the form of admission, made from that of scheduling.
fn offer(info: &NodeInfo, dialects: &Dialects) -> NodeOffer {
    let offers = info.devices.offers.iter().filter_map(|offer| {
        let mode = dialects.named(&offer.profile)?.mode().clone();
        Some((mode, offer.inventory.clone()?))
    });
    NodeOffer::new(info.name.clone(), |key| info.labels.get(key), offers)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        config::Config,
        scheduling::{Event, NodeChange, PodChange, PodList, Scheduler},
    };

    fn hami(name: &str, memory: u32) -> Value {
        let card = json!([{"id": format!("GPU-{name}"), "index": 0, "count": 10, "devmem": memory, "devcore": 100,
            "type": "NVIDIA A100", "numa": 0, "mode": "hami-core", "health": true}]);
        json!({"metadata": {
            "name": name, "resourceVersion": "1",
            "labels": {"kubernetes.io/hostname": format!("{name}.example"), "volcano.sh/revocable-zone": "rz1"},
            "annotations": {"hami.io/node-nvidia-register": card.to_string()},
        }})
    }

    fn node(node: &Value) -> Node {
        serde_json::from_value(node.clone()).unwrap()
    }

    fn kinds() -> Vec<Value> {
        let volcano = "GPU-v,10,16384,NVIDIA-NVIDIA A100,true,hami-core:";
        let named =
            |name: &str, annotations: Value| json!({"metadata": {"name": name, "annotations": annotations}});
        let mut both = hami("both", 16_384);
        both["metadata"]["annotations"]["volcano.sh/node-vgpu-register"] = volcano.into();
        both["metadata"]["labels"] =
            json!({"kubernetes.io/hostname": "both", "volcano.sh/revocable-zone": ""});
        vec![
            hami("hami", 16_384),
            named("volcano", json!({"volcano.sh/node-vgpu-register": volcano})),
            both,
            named("unreadable", json!({"hami.io/node-nvidia-register": "[{"})),
            named("without-cards", json!({"hami.io/node-nvidia-register": "[]"})),
            named("plain", json!({})),
        ]
    }

    #[test]
    fn a_node_offers_the_same_whether_it_is_read_or_seen_by_the_binder() {
        let config = Config::default();
        let mut offering = 0;
        for kind in kinds() {
            let read = NodeOffer::read(&node(&kind), &config.dialects());
            let seen = offer(&config.reader().node(&node(&kind)).0, &config.dialects());
            assert_eq!(seen, read, "{kind}");
            offering += read.offers().len();
        }
        assert_eq!(offering, 4);
    }

    #[test]
    fn a_device_object_that_lists_no_device_adds_no_offer() {
        let offers = |devices: Value| {
            let device = json!({"metadata": {"name": "plain"}, "spec": {"devices": devices}});
            let device: Device = serde_json::from_value(device).unwrap();
            let dialects = Config::default().dialects();
            let node = NodeOffer::read(&node(&json!({"metadata": {"name": "plain"}})), &dialects);
            let nodes = BTreeMap::from([((String::new(), "plain".to_owned()), node.into())]);
            let devices = BTreeMap::from([((String::new(), "plain".to_owned()), read::devices(&device).0)]);
            summary(&nodes, &devices, &dialects).node("plain").unwrap().offers().len()
        };
        let gpu = json!({"type": "gpu", "id": "GPU-a", "minor": 0, "health": true,
            "resources": {"koordinator.sh/gpu-core": "100"}});
        assert_eq!([offers(json!([gpu])), offers(json!([]))], [1, 0]);
    }

    /// A cluster and what is known of it.
    struct Seen {
        scheduler: Scheduler,
        known: KnownInventory,
    }

    impl Seen {
        fn new() -> Self {
            let mut scheduler = Scheduler::standing_by(Config::default().scheduler_settings());
            scheduler.observe(Event::Pod(PodChange::Listed(PodList::default())), Timestamp::UNIX_EPOCH);
            Self { scheduler, known: KnownInventory::default() }
        }

        /// Whether the rules would see a difference after this.
        fn differs_after(&mut self, event: Event) -> bool {
            self.scheduler.observe(event, Timestamp::UNIX_EPOCH);
            let reader = Arc::new(Config::default().reader());
            self.known.take_in(&BinderView { reader, outlook: self.scheduler.view().outlook() })
        }
    }

    #[test]
    fn only_what_the_rules_read_is_news() {
        let mut seen = Seen::new();
        let at = |version: u32, change: fn(&mut Value)| {
            let mut changed = hami("gpu-1", 16_384);
            changed["metadata"]["resourceVersion"] = version.to_string().into();
            change(&mut changed);
            Event::Node(NodeChange::Seen(Box::new(Config::default().reader().node(&node(&changed)).0)))
        };
        assert!(seen.differs_after(at(1, |_| {})), "a node that comes");
        assert!(!seen.differs_after(Event::Tick), "nothing");
        assert!(
            !seen.differs_after(
                at(2, |node| node["metadata"]["annotations"]["hami.io/mutex.lock"] = "x".into())
            )
        );
        assert!(!seen.differs_after(at(3, |node| node["spec"] = json!({"unschedulable": true}))), "a cordon");
        assert!(seen.differs_after(
            at(4, |node| node["metadata"]["labels"]["volcano.sh/revocable-zone"] = "rz2".into())
        ));
        assert!(seen.known.summary(&Config::default().dialects()).node("gpu-1.example").is_some());
        assert!(seen.differs_after(Event::Node(NodeChange::Gone("gpu-1".into()))));
        assert_eq!(seen.known.summary(&Config::default().dialects()).nodes().count(), 0);
    }

    #[test]
    fn cards_are_shared_with_the_binder() {
        let mut seen = Seen::new();
        let node = Config::default().reader().node(&node(&hami("gpu-1", 16_384))).0;
        let inventory = node.devices.offers[0].inventory.clone().unwrap();
        seen.differs_after(Event::Node(NodeChange::Seen(Box::new(node))));
        let summary = seen.known.summary(&Config::default().dialects());
        let (mode, of_node) = summary.node("gpu-1").unwrap().offers().next().unwrap();
        assert!(Arc::ptr_eq(of_node, &inventory) && Arc::ptr_eq(&summary.shapes(mode)[0], &inventory));
        let id = summary.cards().first().unwrap();
        assert!(Arc::ptr_eq(id.name(), inventory.cards()[0].id.name()));
    }

    #[tokio::test]
    async fn an_empty_cluster_is_known_to_be_empty_and_an_unseen_one_is_not_known() {
        let (sender, views) = watch::channel(None);
        let published = std::sync::Mutex::new(Vec::new());
        let follow = seen(views, |summary: InventorySummary| published.lock().unwrap().push(summary));
        let mut follow = std::pin::pin!(follow);
        assert!(futures::poll!(&mut follow).is_pending());
        assert_eq!(published.lock().unwrap().len(), 0);
        let scheduler = Scheduler::standing_by(Config::default().scheduler_settings());
        sender.send_replace(Some(BinderView {
            reader: Arc::new(Config::default().reader()),
            outlook: scheduler.view().outlook(),
        }));
        assert!(futures::poll!(&mut follow).is_pending());
        assert_eq!(*published.lock().unwrap(), [InventorySummary::default()]);
    }
}
