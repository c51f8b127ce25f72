//! A binder that is to be elected by a Lease which can't exist.

use std::{sync::Arc, time::Duration};

use berth::{
    cluster::{
        self, Binder, Clock, ClusterError, Handoff, Leadership, Metrics,
        election::candidate::ElectionSettings,
    },
    config::Config,
};

use crate::{machines::hami_node, support::floor::Floor, world::World};

pub(crate) async fn a_binder_whose_lease_has_no_namespace_ends_with_the_command_to_run(floor: Floor) {
    let Some(world) = World::without_berth(floor, vec![hami_node("gpu-1", 1)]).await else { return };
    let config = Config::default();
    let binder = Binder {
        client: world.cluster.client.clone(),
        settings: config.scheduler_settings(),
        details: config.messages.details,
        reader: Arc::new(config.reader()),
        clock: Clock::System,
        metrics: Metrics::default(),
        writes_at_once: 64,
        leadership: Leadership::Elected(ElectionSettings::new("nowhere", "berth", "a")),
        usage: None,
        handoff: Handoff::default(),
    };
    let ended = tokio::time::timeout(Duration::from_mins(1), cluster::run(binder, std::future::pending()));
    let error = ended.await.expect("it ends by itself").unwrap_err();
    assert!(matches!(error, ClusterError::NoNamespace(_)), "{error}");
    let said = "namespace nowhere does not exist, so the Lease berth can't be kept there; create it: kubectl create namespace nowhere";
    assert_eq!(error.to_string(), said);
}
