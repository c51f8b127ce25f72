//! Berth as `docs/take-over.md` installs, changes and removes it: what `berth manifests` prints, applied, and `berth serve`.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use berth::cli::manifests::{self, Account, InstallationSettings, ManifestsArgs};
use kube::{
    Api, Client, Discovery,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
    discovery::Scope,
};
use serde_json::Value;

use crate::support::{
    controlplane::ControlPlane,
    installed::{ACCOUNT, Replica, free_address},
};

/// What stays when Berth is removed: no controller of the test ends a namespace.
const STAYS: &str = "Namespace";
/// What is removed first, as long as the process still answers.
const ASKS: [&str; 4] = [
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicy",
];

/// Berth in the cluster.
pub(crate) struct Installation {
    plane: Arc<ControlPlane>,
    client: Client,
    discovery: Discovery,
    address: SocketAddr,
    file: PathBuf,
    replica: Option<Replica>,
    started: u32,
}

impl Installation {
    /// Beside HAMi, with the default settings.
    pub(crate) async fn start(plane: &Arc<ControlPlane>) -> Self {
        let client = plane.admin();
        let discovery = Discovery::new(client.clone()).run().await.unwrap();
        let (address, file) = (free_address(), plane.directory().join("berth.yaml"));
        apply(&client, &discovery, objects(address, "")).await;
        let replica = Some(replica(plane, address, &file, 0, ""));
        Self { plane: plane.clone(), client, discovery, address, file, replica, started: 1 }
    }

    /// Applies the manifests of these settings and restarts.
    pub(crate) async fn set(&mut self, settings: &str) {
        apply(&self.client, &self.discovery, objects(self.address, settings)).await;
        let before = self.replica.take().expect("it runs until it is removed");
        assert!(before.stop().await.success());
        self.replica = Some(replica(&self.plane, self.address, &self.file, self.started, settings));
        self.started += 1;
    }

    /// Removes what the API server asks, then the process, then the rest.
    pub(crate) async fn remove(self) {
        let Self { client, discovery, address, replica, .. } = self;
        let (asks, rest): (Vec<Value>, Vec<Value>) = objects(address, "")
            .into_iter()
            .partition(|object| ASKS.contains(&object["kind"].as_str().unwrap()));
        delete(&client, &discovery, asks).await;
        assert!(replica.expect("it runs until it is removed").stop().await.success());
        delete(&client, &discovery, rest).await;
    }
}

/// What `berth manifests --agent … --config …` prints.
fn objects(address: SocketAddr, settings: &str) -> Vec<Value> {
    let account = |name: &str| Account { namespace: "kube-system".to_owned(), name: name.to_owned() };
    let agent = ["hami-device-plugin", "hami-scheduler"].map(account).to_vec();
    let args =
        ManifestsArgs { agent, webhook_url: Some(format!("https://{address}")), ..ManifestsArgs::default() };
    let (settings, notices) = InstallationSettings::parse(settings.to_owned(), "berth.yaml").unwrap();
    assert!(notices.is_empty(), "{notices:?}");
    manifests::objects(&args, &settings).unwrap()
}

fn replica(
    plane: &ControlPlane,
    address: SocketAddr,
    file: &PathBuf,
    number: u32,
    settings: &str,
) -> Replica {
    std::fs::write(file, settings).unwrap();
    let arguments = ["--config", file.to_str().unwrap(), "--shutdown-delay", "0s"];
    Replica::start_as(plane, ACCOUNT, &format!("berth-{number}"), address, &arguments)
}

/// `kubectl apply --server-side`.
async fn apply(client: &Client, discovery: &Discovery, objects: Vec<Value>) {
    let parameters = PatchParams::apply("kubectl").force();
    for object in objects {
        let (api, name) = api(client, discovery, &object);
        let applied = api.patch(&name, &parameters, &Patch::Apply(&object)).await;
        applied.unwrap_or_else(|error| panic!("{object}: {error}"));
    }
}

async fn delete(client: &Client, discovery: &Discovery, objects: Vec<Value>) {
    for object in objects.into_iter().rev().filter(|object| object["kind"] != STAYS) {
        let (api, name) = api(client, discovery, &object);
        let deleted = api.delete(&name, &DeleteParams::default()).await;
        deleted.unwrap_or_else(|error| panic!("{object}: {error}"));
    }
}

fn api(client: &Client, discovery: &Discovery, object: &Value) -> (Api<DynamicObject>, String) {
    let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    let kind = GroupVersionKind::try_from(object.types.as_ref().unwrap()).unwrap();
    let (resource, capabilities) = discovery.resolve_gvk(&kind).unwrap_or_else(|| panic!("no kind {kind:?}"));
    let api = match (&capabilities.scope, &object.metadata.namespace) {
        (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(client.clone(), namespace, &resource),
        _ => Api::all_with(client.clone(), &resource),
    };
    (api, object.metadata.name.unwrap())
}
