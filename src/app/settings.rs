//! The settings in force: the file is read again when it changes; an invalid file is logged, and the old settings stay.

use std::{path::PathBuf, sync::Arc, time::Duration};

use tokio::sync::watch;

use crate::config::{self, Config};

/// How often the file is read; the kubelet updates a mounted ConfigMap within about a minute.
const PERIOD: Duration = Duration::from_secs(10);

/// Reads the settings file again when it changes; never returns. Without a file, it does nothing.
pub(super) async fn follow(file: Option<PathBuf>, settings: watch::Sender<Arc<Config>>) {
    let Some(file) = file else { return std::future::pending().await };
    let mut period = tokio::time::interval(PERIOD);
    let mut known = None;
    loop {
        period.tick().await;
        let read = tokio::task::spawn_blocking({
            let file = file.clone();
            move || config::text(&file)
        });
        match read.await.expect("reading a file does not panic") {
            Ok(text) if known.as_ref() == Some(&text) => {}
            Ok(text) => {
                take(&text, &file.display().to_string(), &settings);
                known = Some(text);
            }
            Err(error) => {
                tracing::warn!(%error, "can't read the settings; the old ones stay in force");
            }
        }
    }
}

fn take(text: &str, file: &str, settings: &watch::Sender<Arc<Config>>) {
    let (config, notices) = match Config::parse(text, file) {
        Ok(read) => read,
        Err(error) => {
            return tracing::warn!(%error, "the new settings are invalid; the old ones stay in force");
        }
    };
    let before = settings.borrow().clone();
    if config == *before {
        return;
    }
    for notice in notices {
        tracing::info!("{notice}");
    }
    let installed = config.installed_otherwise(&before).join(", ");
    if !installed.is_empty() {
        tracing::warn!(
            file,
            keys = installed,
            "these keys take effect after a restart: apply `berth manifests --config` again, since webhook configurations and policies \
             are built from them, and restart Berth"
        );
    }
    let config = config.named_as(&before);
    if config != *before {
        tracing::info!(file, "the new settings are in force");
        settings.send_replace(Arc::new(config));
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
