//! The settings in force: the file is read again when it changes. An invalid file is reported by log, metric and Event, and the old
//! settings stay.

use std::{path::PathBuf, sync::Arc, time::Duration};

use kube::Client;
use prometheus_client::{
    metrics::gauge::Gauge,
    registry::{Registry, Unit},
};
use tokio::sync::watch;

use super::Options;
use crate::{
    cluster::{
        Clock,
        write::tell::{self, News},
    },
    config::{self, Config, ConfigError},
    scheduling::{Concern, Details, PodKey},
};

/// How often the file is read; the kubelet updates a mounted ConfigMap within about a minute.
const PERIOD: Duration = Duration::from_secs(10);

/// How the last reload went, under Prometheus' own names for it; clones are the same.
#[derive(Clone, Debug)]
pub struct Reloads {
    successful: Gauge,
    succeeded_at: Gauge,
    clock: Clock,
}

impl Reloads {
    /// Enters the gauges. The process runs, so its first read succeeded.
    pub fn register(registry: &mut Registry, clock: Clock) -> Self {
        let reloads = Self { successful: Gauge::default(), succeeded_at: Gauge::default(), clock };
        let help = "1 while the settings file is the one in force, 0 since a changed one was rejected";
        registry.register("berth_config_last_reload_successful", help, reloads.successful.clone());
        registry.register_with_unit(
            "berth_config_last_reload_success_timestamp",
            "When settings were last taken in, in seconds since 1970",
            Unit::Seconds,
            reloads.succeeded_at.clone(),
        );
        reloads.succeeded();
        reloads
    }

    fn succeeded(&self) {
        self.successful.set(1);
        self.succeeded_at.set(self.clock.now().as_second());
    }

    fn failed(&self) {
        self.successful.set(0);
    }
}

/// Where a rejected file is reported beside log and metric.
pub(super) struct Reporter {
    client: Client,
    clock: Clock,
    controller: String,
    own_pod: Option<PodKey>,
}

impl Reporter {
    pub(super) fn of(options: &Options) -> Self {
        Self {
            client: options.client.clone(),
            clock: options.clock,
            controller: options.config.scheduler_name.clone(),
            own_pod: options.own_pod.clone(),
        }
    }

    /// An Event on this replica's own pod, which is the one that has read the file.
    async fn rejected(&self, error: &ConfigError) {
        let Some(pod) = self.own_pod.clone() else { return };
        let message = error.to_string();
        let news = News::RejectedSettings { message: &message };
        let of = Concern::Pod(pod);
        let told =
            tell::event(self.client.clone(), (&self.controller, Details::Full), &of, news, self.clock.now());
        if let Err(error) = told.await {
            tracing::warn!(%error, "the Event about rejected settings was not written");
        }
    }
}

/// Reads the settings file again when it changes; never returns. Without a file, it does nothing.
pub(super) async fn follow(
    file: Option<PathBuf>,
    settings: watch::Sender<Arc<Config>>,
    reloads: Reloads,
    reporter: Reporter,
) {
    let Some(file) = file else { return std::future::pending().await };
    let mut period = tokio::time::interval(PERIOD);
    let mut known = None;
    loop {
        period.tick().await;
        let read = tokio::task::spawn_blocking({
            let file = file.clone();
            move || config::text(&file)
        });
        let read = read.await.expect("reading a file does not panic");
        // Each finding is reported once, a file that can't be read included.
        let found = read.as_ref().map(String::clone).map_err(ToString::to_string);
        if known.as_ref() == Some(&found) {
            continue;
        }
        known = Some(found);
        match read.and_then(|text| take(&text, &file.display().to_string(), &settings)) {
            Ok(()) => reloads.succeeded(),
            Err(error) => {
                tracing::warn!(%error, "the settings file was rejected, the previous settings stay in force");
                reloads.failed();
                reporter.rejected(&error).await;
            }
        }
    }
}

fn take(text: &str, file: &str, settings: &watch::Sender<Arc<Config>>) -> Result<(), ConfigError> {
    let (config, notices) = Config::parse(text, file)?;
    let before = settings.borrow().clone();
    let config = config.beside(before.scheduling.api_server);
    if config == *before {
        return Ok(());
    }
    for notice in notices {
        tracing::info!("{notice}");
    }
    let installed = config.installed_otherwise(&before).join(", ");
    if !installed.is_empty() {
        tracing::warn!(
            file,
            keys = installed,
            "these keys take effect after a restart: apply the output of `berth manifests` again, with this file and the other options of your \
             installation, since webhook configurations, policies and roles are built from them, and restart Berth"
        );
    }
    let config = config.named_as(&before);
    if config != *before {
        tracing::info!(file, "the new settings are in force");
        settings.send_replace(Arc::new(config));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduling::model::kube_scheduler::KubeScheduler;

    fn after(text: &str) -> (Arc<Config>, bool) {
        let (sender, mut receiver) = watch::channel(Arc::new(Config::default()));
        let taken = take(text, "berth.yaml", &sender);
        assert_eq!(taken.is_ok(), Config::parse(text, "berth.yaml").is_ok());
        let changed = receiver.has_changed().unwrap();
        (receiver.borrow_and_update().clone(), changed)
    }

    #[test]
    fn a_file_that_is_read_again_leaves_the_release_of_the_api_server_known() {
        let found = Some(KubeScheduler::V1_37);
        let (sender, mut receiver) = watch::channel(Arc::new(Config::default().beside(found)));
        take("", "berth.yaml", &sender).unwrap();
        assert!(!receiver.has_changed().unwrap(), "nothing is new");
        for (text, followed) in [
            ("adoptSchedulers: [volcano]", KubeScheduler::V1_37),
            ("scheduling: {kubeScheduler: v1.36}", KubeScheduler::V1_36),
            ("scheduling: {kubeScheduler: auto}", KubeScheduler::V1_37),
        ] {
            take(text, "berth.yaml", &sender).unwrap();
            assert_eq!(receiver.borrow_and_update().scheduling.followed(), followed, "{text}");
        }
    }

    #[test]
    fn the_gauges_tell_whether_and_when_the_last_reload_succeeded() {
        let mut registry = Registry::default();
        let reloads = Reloads::register(&mut registry, Clock::System);
        let shown = |line: &str| {
            let mut page = String::new();
            prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
            page.contains(line)
        };
        assert!(shown("\nberth_config_last_reload_successful 1\n"));
        assert!(!shown("\nberth_config_last_reload_success_timestamp_seconds 0\n"));
        let succeeded_at = reloads.succeeded_at.get();
        reloads.failed();
        assert!(shown("\nberth_config_last_reload_successful 0\n"));
        assert_eq!(reloads.succeeded_at.get(), succeeded_at, "a rejected file is no success");
    }

    #[test]
    fn a_good_file_replaces_the_settings_and_a_bad_one_does_not() {
        let (config, changed) = after("adoptSchedulers: [volcano]");
        assert!(changed && config.admission_settings().adopt_schedulers.contains("volcano"));
        let (config, changed) = after("adoptSchedulrs: [volcano]");
        assert!(!changed && *config == Config::default());
        let (_, changed) = after("adoptSchedulers: []");
        assert!(!changed, "nothing is new");
    }

    #[test]
    fn names_and_scope_stay_until_a_restart_and_the_rest_of_the_file_does_not_wait() {
        let text = "schedulerName: gpu\nscope: opt-out\ndialects: {hami: {resourceCountName: example.com/gpu, defaultCores: 7}}\n";
        let (config, changed) = after(text);
        assert!(changed);
        let mut expected = Config::default();
        expected.dialects.hami.default_cores = 7;
        assert_eq!(*config, expected);
        let (asked, _) = Config::parse(text, "berth.yaml").unwrap();
        let keys = asked.installed_otherwise(&Config::default());
        assert_eq!(keys, ["schedulerName", "scope", "dialects.hami.resource*Name"]);
        let (_, changed) = after("schedulerName: gpu");
        assert!(!changed, "nothing that could be taken now");
    }
}
