//! The settings in force: the file is read again when it changes; a bad new one is reported and the old one stays.

use std::{path::PathBuf, sync::Arc, time::Duration};

use tokio::sync::watch;

use crate::config::Config;

/// The file is looked at this often; kubelet changes it within a minute.
const PERIOD: Duration = Duration::from_secs(10);

/// Follows the settings file for ever; without one there is nothing to follow.
pub(super) async fn follow(file: Option<PathBuf>, settings: watch::Sender<Arc<Config>>) {
    let Some(file) = file else { return std::future::pending().await };
    let mut period = tokio::time::interval(PERIOD);
    let mut known = None;
    loop {
        period.tick().await;
        match tokio::fs::read_to_string(&file).await {
            Ok(text) if known.as_ref() == Some(&text) => {}
            Ok(text) => {
                take(&text, &file.display().to_string(), &settings);
                known = Some(text);
            }
            Err(error) => {
                tracing::warn!(file = %file.display(), %error, "the settings can't be read, the old ones stay");
            }
        }
    }
}

fn take(text: &str, file: &str, settings: &watch::Sender<Arc<Config>>) {
    match Config::parse(text, file) {
        Ok((config, _)) if config == **settings.borrow() => {}
        Ok((config, notices)) => {
            for notice in notices {
                tracing::info!("{notice}");
            }
            if config.needs_restart(&settings.borrow()) {
                tracing::warn!(
                    file,
                    "resource names, scope or scheduler name changed: the webhook configurations follow after a restart and `berth manifests`"
                );
            }
            tracing::info!(file, "the settings have changed");
            settings.send_replace(Arc::new(config));
        }
        Err(error) => tracing::warn!(%error, "the new settings are no good, the old ones stay"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(text: &str) -> (Arc<Config>, bool) {
        let (sender, mut receiver) = watch::channel(Arc::new(Config::default()));
        take(text, "berth.yaml", &sender);
        let changed = receiver.has_changed().unwrap();
        (receiver.borrow_and_update().clone(), changed)
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
}
