//! The cluster of the demo: API server, nodes with agents, and Berth as it runs anywhere else.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, anyhow};
use futures::FutureExt as _;
use k8s_openapi::api::{
    admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
    core::v1::Namespace,
};
use kube::{Api, Client, Resource, runtime::wait::await_condition};
use owo_colors::Stream;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use tokio::{sync::oneshot, task::JoinSet};

use super::{
    DemoArgs,
    register::{create, register},
};
use crate::{
    api,
    app::{App, CertificateSource, Chooser, Options, Parts},
    cli::output::{self, Shown},
    cluster::{Clock, Leadership},
    config::Config,
    webhook::{
        certificate::{mint::ServingNames, registration::WebhookConfigurations},
        page::debug::LEDGER,
        router::ServerReadiness,
    },
};
use berth_sandbox::{
    Https, Sandbox,
    agent::{Fleet, card::Card, koordlet::Koordlet, node::Node, wire::Release},
};

/// A namespace that has opted in, with a hint that binds its pods.
pub(super) const OPTED_IN: &str = "team-a";
/// A namespace that has not.
pub(super) const OUTSIDE: &str = "elsewhere";

const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// Everything that runs.
pub(super) struct DemoStage {
    pub(super) client: Client,
    pub(super) config: Config,
    pub(super) fleet: Fleet,
    sandbox: Sandbox,
    /// Where Berth answers.
    listens: SocketAddr,
    /// Shows everything, without a token.
    pub(super) api: Arc<api::Api>,
    berth: JoinSet<anyhow::Result<()>>,
    end: oneshot::Sender<()>,
    told_on: Stream,
}

impl DemoStage {
    /// Says a line of the story: on standard output, unless that is kept for the kubeconfig.
    pub(super) fn say(&self, line: std::fmt::Arguments<'_>) -> anyhow::Result<()> {
        self.show(Shown::text(line))
    }

    /// Says a line that has words which stand out.
    pub(super) fn show(&self, line: Shown) -> anyhow::Result<()> {
        match self.told_on {
            Stream::Stdout => output::show(&line.ended()),
            Stream::Stderr => {
                output::show_aside(&line.ended());
                Ok(())
            }
        }
    }

    /// Where the story is told.
    pub(super) fn stream(&self) -> Stream {
        self.told_on
    }

    /// Starts everything and waits until it is ready.
    pub(super) async fn set(args: &DemoArgs, config: Config) -> anyhow::Result<Self> {
        let sandbox = Sandbox::new(berth_sandbox::Options {
            seed: args.seed,
            base_time: Clock::System.now(),
            transport: Arc::new(Https::default()),
            workloads: berth_sandbox::Workloads::Warned,
            ..berth_sandbox::Options::default()
        });
        let client = sandbox.client();
        let app = App::bind(options(config.clone(), client.clone())).await?;
        let (listens, open_api) = (app.local_addr(), app.open_api());
        register(&client, listens).await?;
        let mut ready = app.readiness();
        let (end, ended) = oneshot::channel();
        let mut berth = JoinSet::new();
        berth.spawn(async move {
            app.run(ended.map(|_| Duration::ZERO)).await?;
            Ok(())
        });
        let mut stage = Self {
            fleet: Fleet::start(client.clone(), nodes(args.nodes)).await?,
            client,
            config,
            sandbox,
            listens,
            api: open_api,
            berth,
            end,
            told_on: if args.keep { Stream::Stderr } else { Stream::Stdout },
        };
        let client = stage.client.clone();
        stage
            .while_it_stands(async move |_: &Self| {
                ready.wait_for(|readiness| *readiness == ServerReadiness::Ready).await?;
                trusted::<MutatingWebhookConfiguration>(&client).await?;
                trusted::<ValidatingWebhookConfiguration>(&client).await?;
                namespaces(&client).await
            })
            .await?;
        Ok(stage)
    }

    /// Does something while Berth runs; if Berth ends meanwhile, so does this.
    pub(super) async fn while_it_stands<T>(
        &mut self,
        act: impl AsyncFnOnce(&Self) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let mut berth = std::mem::take(&mut self.berth);
        let outcome = tokio::select! {
            outcome = act(self) => outcome,
            Some(ended) = berth.join_next() => {
                ended??;
                Err(anyhow!("Berth has ended"))
            }
        };
        self.berth = berth;
        outcome
    }

    /// Serves the cluster on a socket until SIGTERM or SIGINT, and prints its kubeconfig on standard output. What is done meanwhile ends it if it
    /// fails.
    pub(super) async fn keep(
        &mut self,
        meanwhile: impl AsyncFnOnce(&Self) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let served = self.sandbox.serve(ANY_PORT).await?;
        output::write(&format!("{}\n", served.kubeconfig))?;
        output::remark(&format!("The cluster stays up at {} until you press Ctrl-C.", served.url));
        output::remark("The ledger, which shows the pods of each card:");
        output::remark(&format!(
            "  curl -k -H 'Authorization: Bearer {}' https://{}{LEDGER}",
            served.token, self.listens
        ));
        self.while_it_stands(async move |stage: &Self| {
            tokio::select! {
                never = served.run => match never {},
                done = meanwhile(stage) => done,
                _ = crate::cli::serve::told_to_end() => Ok(()),
            }
        })
        .await
    }

    /// Ends Berth in order.
    pub(super) async fn clear(mut self) -> anyhow::Result<()> {
        drop(self.end);
        while let Some(ended) = self.berth.join_next().await {
            ended??;
        }
        Ok(())
    }
}

fn options(config: Config, client: Client) -> Options {
    let serving = ServingNames {
        service: "berth".to_owned(),
        namespace: "berth-system".to_owned(),
        extra: vec!["127.0.0.1".to_owned(), "localhost".to_owned()],
    };
    Options {
        own_pod: None,
        config,
        config_file: None,
        client,
        clock: Clock::System,
        parts: Parts::Both,
        chooser: Chooser::Berth,
        leadership: Leadership::Alone,
        listen: ANY_PORT,
        certificates: CertificateSource::Minted(serving),
        client_ca_file: None,
        registration: WebhookConfigurations { mutating: "berth".to_owned(), validating: "berth".to_owned() },
    }
}

/// Waits until the configuration trusts Berth's authority.
async fn trusted<K>(client: &Client) -> anyhow::Result<()>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Serialize
        + Send
        + 'static,
{
    let told = |found: Option<&K>| {
        let found = found.and_then(|found| serde_json::to_value(found).ok());
        let webhooks = found.and_then(|found| found["webhooks"].as_array().cloned()).unwrap_or_default();
        !webhooks.is_empty() && webhooks.iter().all(|webhook| webhook["clientConfig"]["caBundle"].is_string())
    };
    await_condition(Api::<K>::all(client.clone()), "berth", told)
        .await
        .context("waiting for the webhooks' authority")?;
    Ok(())
}

async fn namespaces(client: &Client) -> anyhow::Result<()> {
    let opted_in = json!({"metadata": {
        "name": OPTED_IN,
        "labels": {"berth.dev/admission": "enabled"},
        "annotations": {"nvidia.com/nouse-gputype": "K80"},
    }});
    for object in [opted_in, json!({"metadata": {"name": OUTSIDE}})] {
        create::<Namespace>(client, object).await?;
    }
    Ok(())
}

/// HAMi nodes with A100s and Volcano nodes with H100s, each with two cards.
fn nodes(count: u32) -> Vec<Node> {
    let node = |at: u32| {
        let hami = at < count.div_ceil(2);
        let (plugin, product, memory) = if hami {
            ("hami", "NVIDIA A100-SXM4-40GB", 40_960)
        } else {
            ("volcano", "NVIDIA H100 80GB HBM3", 81_920)
        };
        let number = if hami { at } else { at - count.div_ceil(2) };
        let name = format!("{plugin}-{number}");
        let node = Node::new(&name)
            .allocatable("cpu", "64")
            .allocatable("memory", "512Gi")
            .allocatable("pods", "110");
        let node = (0..2).fold(node, |node, index| {
            node.card(Card::new(&format!("GPU-{name}-{index}"), index, memory).slots(10).product(product))
        });
        if hami { node.hami(Release::V2_10) } else { node.volcano() }
    };
    (0..count).map(node).chain([typed_devices()]).collect()
}

/// A node with four GPUs and two NICs below two PCIe roots.
fn typed_devices() -> Node {
    let name = "koordinator-0";
    Node::new(name)
        .allocatable("cpu", "64")
        .allocatable("memory", "512Gi")
        .allocatable("pods", "110")
        .koordlet(Koordlet::new(name, 4, 2))
}
