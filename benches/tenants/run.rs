//! The cluster, the program, and the attacks one after another.

use std::time::Duration;

use anyhow::Context as _;
use berth_sandbox::agent::Fleet;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::{
    api::{
        core::v1::{Namespace, Pod},
        resource::v1::{DeviceClass, ResourceClaim, ResourceSlice},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
    runtime::{conditions::is_crd_established, wait::await_condition},
};
use serde_json::json;
use tokio::task::JoinSet;

use super::{
    attack::Attack,
    probe::{self, Binder},
};
use crate::{
    load,
    support::{
        controlplane::{ControlPlane, GarbageCollection, LIMITLESS, Options},
        installed::{Replica, free_address},
    },
};

/// The class of devices, and their driver.
pub(crate) const CLASS: &str = "gpu.example.com";

/// Measures the probes without an attack, beside each, and beside all; without the program, the bare ones only.
pub(crate) async fn all(
    nodes: usize,
    probes: usize,
    attacks: &[Attack],
    without_program: bool,
) -> anyhow::Result<()> {
    let options = Options {
        apiserver_flags: LIMITLESS.map(str::to_owned).to_vec(),
        garbage_collection: GarbageCollection::Usual,
        ..Options::default()
    };
    let plane = ControlPlane::start(options).await.context("there is no real control plane here")?;
    let client = plane.admin();
    prepare(&client, nodes).await?;
    let _fleet = Fleet::start(client.clone(), (0..nodes).map(load::node).collect()).await?;
    let arguments = ["--scheduler-only", "--leader-elect=false"];
    let replica =
        (!without_program).then(|| Replica::start_as(&plane, "admin", "berth", free_address(), &arguments));
    namespace(&client, "other").await?;
    let mut watching = JoinSet::new();
    let bench = Binder::Bench(probe::watch_all(&client, &mut watching));
    // Only a scheduler that has listed everything binds the first one.
    measure(&client, 1, replica.as_ref(), &bench).await?;
    measure(&client, probes, replica.as_ref(), &bench).await?.print("no attack");
    for attack in attacks {
        let name = format!("{attack:?}").to_lowercase();
        namespace(&client, &name).await?;
        attack.begin(&client, &name).await.with_context(|| format!("attack {name}"))?;
        measure(&client, probes, replica.as_ref(), &bench).await?.print(&name);
        clear(&client, &name).await?;
        measure(&client, 1, replica.as_ref(), &bench).await?;
    }
    namespace(&client, "all").await?;
    for attack in attacks {
        attack.begin(&client, "all").await.with_context(|| format!("attack {attack:?}"))?;
    }
    measure(&client, probes, replica.as_ref(), &bench).await?.print("all of them");
    if let Some(replica) = replica {
        let began = tokio::time::Instant::now();
        let status = replica.stop().await;
        println!("  SIGTERM beside all of them: {status} after {:.1} s", began.elapsed().as_secs_f64());
    }
    Ok(())
}

/// What was measured beside an attack.
struct Measured {
    /// How long the probes waited that the program binds, and its memory now and at most, in MiB.
    program: Option<(Vec<Duration>, (u64, u64))>,
    /// How long those waited that the bench binds.
    bare: Vec<Duration>,
}

/// Both kinds of probes, side by side.
async fn measure(
    client: &Client,
    probes: usize,
    replica: Option<&Replica>,
    bench: &Binder,
) -> anyhow::Result<Measured> {
    let bare = Box::pin(probe::waits(client, "other", probes, bench));
    let Some(replica) = replica else { return Ok(Measured { program: None, bare: bare.await? }) };
    let program = Box::pin(probe::waits(client, "other", probes, &Binder::Program));
    let (program, bare) = tokio::try_join!(program, bare)?;
    Ok(Measured { program: Some((program, replica.memory())), bare })
}

impl Measured {
    fn print(mut self, what: &str) {
        let program = self.program.as_mut().map_or_else(String::new, |(waits, (now, most))| {
            format!(
                "probe bound after {} of {}; RSS {now} MiB, {most} at most; ",
                median_and_most(waits),
                waits.len()
            )
        });
        println!("  {what:<14} {program}bare probe after {}", median_and_most(&mut self.bare));
    }
}

fn median_and_most(waits: &mut [Duration]) -> String {
    waits.sort();
    let milliseconds = |at: usize| waits.get(at).map_or(0.0, |wait| wait.as_secs_f64() * 1000.0);
    let (median, most) = (milliseconds(waits.len() / 2), milliseconds(waits.len().saturating_sub(1)));
    format!("{median:>7.1} ms (median), {most:>7.1} ms (most)")
}

async fn namespace(client: &Client, name: &str) -> anyhow::Result<()> {
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.map(drop).context("a namespace")
}

/// What a driver publishes of each node, the class, and the kind PodGroup.
async fn prepare(client: &Client, nodes: usize) -> anyhow::Result<()> {
    let class: DeviceClass = serde_json::from_value(json!({"metadata": {"name": CLASS}}))?;
    Api::all(client.clone()).create(&PostParams::default(), &class).await?;
    let slices: Api<ResourceSlice> = Api::all(client.clone());
    let created = (0..nodes).map(|node| {
        let slices = &slices;
        async move {
            let name = format!("node-{node:04}");
            // Seven devices have a value in common: eight are looked for.
            let device = |at: usize| {
                let group = if at < 7 { "a".to_owned() } else { format!("b{at}") };
                json!({"name": format!("gpu-{at}"), "allowMultipleAllocations": true,
                    "attributes": {"group": {"string": group}}, "capacity": {"memory": {"value": "80Gi"}}})
            };
            let devices: Vec<_> = (0..8).map(device).collect();
            let slice = json!({
                "metadata": {"name": format!("{name}-gpu")},
                "spec": {"driver": CLASS, "nodeName": name, "devices": devices,
                    "pool": {"name": name, "generation": 1, "resourceSliceCount": 1}},
            });
            let slice: ResourceSlice = serde_json::from_value(slice)?;
            slices.create(&PostParams::default(), &slice).await.map(drop).context(name)
        }
    });
    stream::iter(created).buffer_unordered(32).try_collect::<Vec<()>>().await?;
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let crd = json!({
        "metadata": {"name": "podgroups.scheduling.volcano.sh"},
        "spec": {
            "group": "scheduling.volcano.sh", "scope": "Namespaced",
            "names": {"plural": "podgroups", "singular": "podgroup", "kind": "PodGroup"},
            "versions": [{"name": "v1beta1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    });
    crds.create(&PostParams::default(), &serde_json::from_value(crd)?).await?;
    let established = await_condition(crds, "podgroups.scheduling.volcano.sh", is_crd_established());
    tokio::time::timeout(Duration::from_mins(1), established).await.context("PodGroups are not served")??;
    Ok(())
}

/// Takes away what an attack has created.
async fn clear(client: &Client, namespace: &str) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let claims: Api<ResourceClaim> = Api::namespaced(client.clone(), namespace);
    let now = DeleteParams::default().grace_period(0);
    pods.delete_collection(&now, &ListParams::default()).await?;
    claims.delete_collection(&now, &ListParams::default()).await?;
    Ok(())
}
