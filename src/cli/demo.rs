//! `berth demo`: a cluster inside this process, with the real webhook over HTTPS and the real binder, and a small story.

mod devices;
mod picture;
mod register;
mod stage;
mod story;

use clap::Args;

pub use register::register;

use crate::config::Config;

const EXAMPLE: &str = "\
Example: keep the cluster running and inspect it with kubectl
  berth demo --keep > berth-demo.kubeconfig
  kubectl --kubeconfig berth-demo.kubeconfig -n team-a get pods";

/// Run a demonstration cluster inside this process.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct DemoArgs {
    /// Keep the cluster running, and print its kubeconfig on standard output
    #[arg(long)]
    pub keep: bool,
    /// Number of GPU nodes: one half with HAMi's device plugin, the other with Volcano's; one more has Koordinator's koordlet
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=500))]
    pub nodes: u32,
    /// Number of pods to add after the story
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(0..=5000))]
    pub pods: u32,
    /// Seed of the added pods and of all uids
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Plays the story; with `--keep`, the cluster runs until SIGTERM or SIGINT.
pub async fn run(args: DemoArgs, config: Config) -> anyhow::Result<()> {
    let mut stage = stage::DemoStage::set(&args, config).await?;
    stage.while_it_stands(story::tell(&args)).await?;
    if args.keep {
        stage.keep().await?;
    }
    stage.clear().await
}
