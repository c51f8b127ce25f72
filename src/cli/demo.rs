//! `berth demo`: a cluster inside this process, with the real webhook over HTTPS and the real binder, and a small story.

mod arrivals;
mod devices;
mod picture;
mod register;
mod stage;
mod story;
mod web;

use clap::Args;

pub use register::register;

use crate::config::Config;

const EXAMPLE: &str = "\
Example: keep the cluster running and inspect it with kubectl
  berth demo --keep > berth-demo.kubeconfig
  kubectl --kubeconfig berth-demo.kubeconfig -n team-a get pods

Example: look at the cluster in a browser while pods arrive and end
  berth demo --web > berth-demo.kubeconfig";

/// Run a demonstration cluster inside this process.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct DemoArgs {
    /// Keep the cluster running, and print its kubeconfig on standard output
    #[arg(long)]
    pub keep: bool,
    /// Show the cluster on a web page while pods arrive and end; this keeps it running
    #[arg(long)]
    pub web: bool,
    /// Port of the web page on 127.0.0.1; 0 is any that is free
    #[arg(long, default_value_t = 0, requires = "web")]
    pub port: u16,
    /// Print the address of the web page and open no browser
    #[arg(long, requires = "web")]
    pub no_open: bool,
    /// Number of GPU nodes: one half with HAMi's device plugin, the other with Volcano's; one more has Koordinator's koordlet [with --web: 16]
    #[arg(long, default_value_t = 4, default_value_if("web", "true", "16"), value_parser = clap::value_parser!(u32).range(2..=500))]
    pub nodes: u32,
    /// Number of pods to add after the story
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(0..=5000))]
    pub pods: u32,
    /// Seed of the pods that arrive by themselves and of all uids
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Plays the story; with `--keep` or `--web`, the cluster runs until SIGTERM or SIGINT.
pub async fn run(mut args: DemoArgs, config: Config) -> anyhow::Result<()> {
    args.keep |= args.web;
    let page = if args.web { Some(web::DemoPage::bind(&args).await?) } else { None };
    let mut stage = stage::DemoStage::set(&args, config).await?;
    Box::pin(stage.while_it_stands(story::tell(&args))).await?;
    match page {
        Some(page) => {
            let seen = async |stage: &stage::DemoStage| {
                tokio::select! {
                    ended = page.show(stage.api.clone()) => ended,
                    ended = arrivals::come_and_go(stage, &args) => ended,
                }
            };
            stage.keep(seen).await?;
        }
        None if args.keep => stage.keep(async |_: &stage::DemoStage| std::future::pending().await).await?,
        None => {}
    }
    stage.clear().await
}
