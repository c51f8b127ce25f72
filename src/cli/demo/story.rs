//! The steps of the demo.

use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::PostParams, runtime::wait::await_condition};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, timeout};

use super::{
    DemoArgs, devices, picture,
    stage::{DemoStage, OPTED_IN, OUTSIDE},
};
use crate::{
    cli::output::{Paint, Shown},
    dialect::koordinator,
};

/// A step that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(20);

/// What should come of a pod.
enum Expected {
    Bound,
    /// As `Bound`, and the webhook is not asked.
    BoundUnasked,
    Unschedulable,
    Denied,
    DryRun,
}

struct StoryStep {
    title: &'static str,
    namespace: &'static str,
    pod: Value,
    expected: Expected,
}

/// Tells the whole story and draws the cards at its end.
pub(super) fn tell(args: &DemoArgs) -> impl AsyncFnOnce(&DemoStage) -> anyhow::Result<()> {
    let args = args.clone();
    async move |stage: &DemoStage| {
        let started = Instant::now();
        heading(
            stage,
            &format!(
                "A cluster of {} GPU nodes: HAMi's device plugin on one half, Volcano's on the other; and one with Koordinator's koordlet.",
                args.nodes
            ),
        )?;
        stage.say(format_args!(
            "  Namespace {OPTED_IN} has opted in (label berth.dev/admission: enabled); {OUTSIDE} has not."
        ))?;
        stage.say(format_args!(""))?;
        for (at, step) in steps().into_iter().chain(by_type()).enumerate() {
            play(stage, at + 1, step).await?;
        }
        if args.pods > 0 {
            more(stage, &args).await?;
        }
        heading(stage, "The cards")?;
        picture::draw(stage).await?;
        heading(stage, "GPUs and NICs, by PCIe root")?;
        devices::draw(stage).await?;
        let violations = stage.fleet.violations();
        if !violations.is_empty() {
            bail!("a device plugin found a wrong assignment: {violations:?}");
        }
        stage.say(format_args!(""))?;
        stage.say(format_args!(
            "Done in {:.1} s. Every device plugin could read its assignments.",
            started.elapsed().as_secs_f64()
        ))?;
        Ok(())
    }
}

fn steps() -> Vec<StoryStep> {
    use Expected::{Bound, Denied, DryRun, Unschedulable};
    let step = |title, pod, expected| StoryStep { title, namespace: OPTED_IN, pod, expected };
    vec![
        step(
            "a share by memory",
            hami("memory", &json!({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 8000})),
            Bound,
        ),
        step(
            "a share by percentage",
            hami("percentage", &json!({"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 25})),
            Bound,
        ),
        step(
            "memory and compute",
            hami(
                "cores",
                &json!({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 4000, "nvidia.com/gpucores": 30}),
            ),
            Bound,
        ),
        step(
            "two cards at once",
            hami("two-cards", &json!({"nvidia.com/gpu": 2, "nvidia.com/gpumem": 6000})),
            Bound,
        ),
        step(
            "a vGPU on a Volcano node",
            hami("vgpu", &json!({"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 20000})),
            Bound,
        ),
        step("a pod that accepts only an H100", typed("by-type", "H100"), Bound),
        step("a pod that accepts only one card", by_uuid("by-uuid", "GPU-hami-0-0"), Bound),
        step(
            "two modes in one pod",
            hami("mixed", &json!({"nvidia.com/gpu": 1, "volcano.sh/vgpu-number": 1})),
            Denied,
        ),
        step(
            "an impossible quantity",
            hami("gibibytes", &json!({"nvidia.com/gpu": 1, "nvidia.com/gpumem": "16Gi"})),
            Denied,
        ),
        step(
            "a server-side dry run",
            hami("dry-run", &json!({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 1000})),
            DryRun,
        ),
        step(
            "more memory than any card has",
            hami("too-big", &json!({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 90000})),
            Unschedulable,
        ),
        StoryStep {
            title: "a namespace that has not opted in: the webhook is not called; Berth places the pod, which names Berth",
            namespace: OUTSIDE,
            pod: outside(),
            expected: Expected::BoundUnasked,
        },
    ]
}

/// Pods that ask for devices by type, as Koordinator names them.
fn by_type() -> [StoryStep; 2] {
    let step = |title, pod| StoryStep { title, namespace: OPTED_IN, pod, expected: Expected::Bound };
    [
        step("two GPUs and the NIC of their PCIe root", joint()),
        step("half of one GPU, by Koordinator's names", hami("half", &json!({"koordinator.sh/gpu": 50}))),
    ]
}

fn hami(name: &str, limits: &Value) -> Value {
    let limits: serde_json::Map<String, Value> = limits
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, amount)| {
            (name.clone(), amount.as_str().map_or_else(|| amount.to_string(), str::to_owned).into())
        })
        .collect();
    json!({
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "registry.example/train", "resources": {"limits": limits}}]},
    })
}

fn typed(name: &str, model: &str) -> Value {
    let mut pod = hami(name, &json!({"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 10000}));
    pod["metadata"]["annotations"] = json!({"nvidia.com/use-gputype": model});
    pod
}

fn by_uuid(name: &str, uuid: &str) -> Value {
    let mut pod = hami(name, &json!({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 2000}));
    pod["metadata"]["annotations"] = json!({"nvidia.com/use-gpuuuid": uuid});
    pod
}

fn joint() -> Value {
    let mut pod = hami("joint", &json!({"koordinator.sh/gpu": 200, "koordinator.sh/rdma": 100}));
    let rule = json!({"deviceTypes": ["gpu", "rdma"], "requiredScope": "SamePCIe"});
    pod["metadata"]["annotations"] =
        json!({"scheduling.koordinator.sh/device-joint-allocate": rule.to_string()});
    pod
}

fn outside() -> Value {
    let mut pod = hami("guest", &json!({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000}));
    pod["spec"]["schedulerName"] = "berth".into();
    pod
}

async fn play(stage: &DemoStage, number: usize, step: StoryStep) -> anyhow::Result<()> {
    let name = step.pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    heading(stage, &format!("{number}. {} ({}/{name})", step.title, step.namespace))?;
    let pods: Api<Pod> = Api::namespaced(stage.client.clone(), step.namespace);
    let created = create(&pods, step.pod, matches!(step.expected, Expected::DryRun)).await;
    match (step.expected, created) {
        (Expected::Denied, Err(kube::Error::Api(status))) => {
            bad(stage, "denied", format_args!("{}", status.message))?;
        }
        (Expected::DryRun, Ok(pod)) => {
            let stored = pods.get_opt(&name).await?.is_some();
            good(
                stage,
                "admitted",
                format_args!("schedulerName would be {}; stored: {stored}", scheduler(&pod)),
            )?;
        }
        (expected @ (Expected::Bound | Expected::BoundUnasked), Ok(pod)) => {
            let outcome = match expected {
                Expected::BoundUnasked => "stored as it is",
                _ => "admitted",
            };
            good(stage, outcome, format_args!("schedulerName: {}", scheduler(&pod)))?;
            let pod = await_pod(&pods, &name, |pod| phase(pod) == "Running").await?;
            good(stage, "running", format_args!("{}", place(&pod)))?;
        }
        (Expected::Unschedulable, Ok(pod)) => {
            good(stage, "admitted", format_args!("schedulerName: {}", scheduler(&pod)))?;
            let pod = await_pod(&pods, &name, |pod| waits_because(pod).is_some()).await?;
            bad(stage, "pending", format_args!("{}", waits_because(&pod).unwrap_or_default()))?;
        }
        (_, Ok(pod)) => bail!("pod {name} was admitted and should not have been: {pod:?}"),
        (_, Err(error)) => return Err(error).with_context(|| format!("creating pod {name}")),
    }
    Ok(())
}

/// Further pods, all at once, of sizes that the seed decides.
async fn more(stage: &DemoStage, args: &DemoArgs) -> anyhow::Result<()> {
    heading(stage, &format!("{} more pods at once", args.pods))?;
    let pods: Api<Pod> = Api::namespaced(stage.client.clone(), OPTED_IN);
    let started = Instant::now();
    let mut dice = args.seed;
    for at in 0..args.pods {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let memory = 500 + (dice >> 33) % 2500;
        let limits = if at % 2 == 0 {
            json!({"nvidia.com/gpu": 1, "nvidia.com/gpumem": memory, "nvidia.com/gpucores": 2})
        } else {
            json!({"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": memory})
        };
        create(&pods, hami(&format!("more-{at}"), &limits), false)
            .await
            .context("creating an additional pod")?;
    }
    let mut running = 0;
    for at in 0..args.pods {
        let pod = await_pod(&pods, &format!("more-{at}"), |pod| {
            phase(pod) == "Running" || waits_because(pod).is_some()
        })
        .await?;
        running += u32::from(phase(&pod) == "Running");
    }
    let seconds = started.elapsed().as_secs_f64();
    good(stage, "running", format_args!("{running} of {} in {seconds:.2} s", args.pods))?;
    Ok(())
}

async fn create(pods: &Api<Pod>, pod: Value, dry_run: bool) -> Result<Pod, kube::Error> {
    let pod: Pod = serde_json::from_value(pod).map_err(kube::Error::SerdeError)?;
    pods.create(&PostParams { dry_run, ..PostParams::default() }, &pod).await
}

async fn await_pod(pods: &Api<Pod>, name: &str, wanted: impl Fn(&Pod) -> bool) -> anyhow::Result<Pod> {
    let found = await_condition(pods.clone(), name, |pod: Option<&Pod>| pod.is_some_and(&wanted));
    let found =
        timeout(LIMIT, found).await.with_context(|| format!("pod {name} is not where it should be"))??;
    found.with_context(|| format!("pod {name} is gone"))
}

fn scheduler(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.scheduler_name.as_deref()).unwrap_or_default()
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Node and cards, as the node's agent reads them.
fn place(pod: &Pod) -> String {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
    let annotations = pod.metadata.annotations.as_ref();
    let keys = ["hami.io/vgpu-devices-allocated", "volcano.sh/vgpu-ids-new", koordinator::names::ALLOCATED];
    let devices = keys.into_iter().find_map(|key| annotations?.get(key)).map_or("", String::as_str);
    format!("on {node}: {devices}")
}

fn waits_because(pod: &Pod) -> Option<&str> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let waits = conditions.iter().find(|condition| condition.reason.as_deref() == Some("Unschedulable"))?;
    waits.message.as_deref()
}

fn heading(stage: &DemoStage, text: &str) -> anyhow::Result<()> {
    stage.show(Shown::painted(text, Paint::Bold, stage.stream()))
}

/// What became of a pod as it should, and more about it.
fn good(stage: &DemoStage, outcome: &str, more: std::fmt::Arguments<'_>) -> anyhow::Result<()> {
    became(stage, outcome, Paint::Green, more)
}

/// The same of one that does not run.
fn bad(stage: &DemoStage, outcome: &str, more: std::fmt::Arguments<'_>) -> anyhow::Result<()> {
    became(stage, outcome, Paint::Yellow, more)
}

fn became(
    stage: &DemoStage,
    outcome: &str,
    paint: Paint,
    more: std::fmt::Arguments<'_>,
) -> anyhow::Result<()> {
    let outcome = Shown::painted(outcome, paint, stage.stream());
    stage.show(Shown::text("   ").and(&outcome).and(&Shown::text(format_args!(" {more}"))))
}
