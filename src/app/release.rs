//! The release of the API server while the process runs: after an upgrade of the control plane, Berth decides as the kube-scheduler of the new release.
//!
//! It decides nothing. A release that is new becomes a part of the settings, and new settings begin the binder anew.

use std::{sync::Arc, time::Duration};

use kube::Client;
use tokio::{sync::watch, time::MissedTickBehavior};

use super::kubernetes;
use crate::{config::Config, scheduling::model::kube_scheduler::KubeScheduler};

/// How often the API server is asked for its version.
const PERIOD: Duration = Duration::from_mins(1);

/// So many answers in a row that name one release are taken for an upgrade. Of several API servers that are upgraded one after the other, requests reach
/// old ones and new ones.
const AGREEING: u32 = 2;

/// Follows the version that the API server names; never returns. A request without an answer changes nothing.
pub(super) async fn follow(client: Client, settings: watch::Sender<Arc<Config>>) {
    let mut period = tokio::time::interval(PERIOD);
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut named: Option<(KubeScheduler, u32)> = None;
    loop {
        period.tick().await;
        let Some(release) = asked(&client).await else { continue };
        let times = named.filter(|(before, _)| *before == release).map_or(1, |(_, times)| times + 1);
        named = Some((release, times));
        if times >= AGREEING {
            take(release, &settings);
        }
    }
}

/// The release that the API server names; `None`: it does not answer, or with a version without numbers or one that Berth can't work with.
async fn asked(client: &Client) -> Option<KubeScheduler> {
    match kubernetes::check(client).await {
        Ok(version) => version.map(|version| KubeScheduler::of_minor(version.minor)),
        Err(error) => {
            tracing::warn!(%error, "the API server's version is not supported; Berth goes on as before");
            None
        }
    }
}

/// Puts the release into the settings. Where it makes no difference, because the settings name one, nothing begins anew.
fn take(release: KubeScheduler, settings: &watch::Sender<Arc<Config>>) {
    settings.send_if_modified(|config| {
        if config.scheduling.api_server == Some(release) {
            return false;
        }
        let before = config.scheduling.followed();
        *config = Arc::new(Config::clone(config).beside(Some(release)));
        let now = config.scheduling.followed();
        if now != before {
            tracing::info!(
                before = before.word(),
                now = now.word(),
                "the API server has another release: that of kube-scheduler which belongs to it is followed from now on"
            );
        }
        now != before
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use http::{Request, Response, StatusCode};
    use kube::client::Body;
    use serde_json::json;
    use tower::service_fn;

    use super::*;

    /// An API server that answers one question after another with these minor versions of Kubernetes, and goes on with the last; `None`: with an error.
    fn api_server(answers: &[Option<u32>]) -> Client {
        let mut answers = answers.to_vec();
        answers.reverse();
        let answers = Arc::new(Mutex::new(answers));
        let service = service_fn(move |request: Request<Body>| {
            let answers = Arc::clone(&answers);
            async move {
                assert_eq!(request.uri().path(), "/version");
                let mut answers = answers.lock().unwrap();
                let next = if answers.len() > 1 { answers.pop() } else { answers.last().copied() };
                let (status, body) = match next.flatten() {
                    Some(minor) => (StatusCode::OK, version(minor)),
                    None => (StatusCode::SERVICE_UNAVAILABLE, json!({"kind": "Status", "code": 503})),
                };
                let answer =
                    Response::builder().status(status).body(Body::from(body.to_string().into_bytes()));
                Ok::<_, std::io::Error>(answer.unwrap())
            }
        });
        Client::new(service, "default")
    }

    fn version(minor: u32) -> serde_json::Value {
        json!({"major": "1", "minor": minor.to_string(), "gitVersion": format!("v1.{minor}.0"), "gitCommit": "", "gitTreeState": "",
            "buildDate": "", "goVersion": "", "compiler": "", "platform": ""})
    }

    /// The releases that are followed one after another until long after the last answer, with these settings beside an API server that was 1.36 at first.
    async fn followed(text: &str, answers: &[Option<u32>]) -> Vec<&'static str> {
        let config = Config::parse(text, "berth.yaml").unwrap().0.beside(Some(KubeScheduler::V1_36));
        let (sender, mut settings) = watch::channel(Arc::new(config));
        let mut seen = Vec::new();
        let answered = PERIOD * u32::try_from(answers.len() + 3).unwrap();
        let following = follow(api_server(answers), sender.clone());
        let noting = async {
            while settings.changed().await.is_ok() {
                seen.push(settings.borrow_and_update().scheduling.followed().word());
            }
        };
        let ended = tokio::time::timeout(answered, futures::future::join(following, noting)).await;
        assert!(ended.is_err(), "it never ends by itself");
        seen
    }

    #[tokio::test(start_paused = true)]
    async fn an_upgrade_and_a_downgrade_of_the_api_server_are_followed_and_restart_nothing_else() {
        assert_eq!(followed("", &[Some(36)]).await, [""; 0]);
        assert_eq!(followed("", &[Some(36), Some(37)]).await, ["v1.37"]);
        assert_eq!(followed("", &[Some(37), Some(37), Some(36), Some(36)]).await, ["v1.37", "v1.36"]);
        assert_eq!(followed("scheduling: {kubeScheduler: v1.36}", &[Some(37)]).await, [""; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn one_answer_is_no_upgrade_and_none_says_nothing() {
        let mixed = [Some(37), Some(36), Some(37), Some(36), Some(36)];
        assert_eq!(
            followed("", &mixed).await,
            [""; 0],
            "some API servers are upgraded, and others are not yet"
        );
        assert_eq!(followed("", &[Some(36), None]).await, [""; 0]);
        assert_eq!(followed("", &[Some(37), None, Some(37)]).await, ["v1.37"]);
        assert_eq!(followed("", &[Some(37), Some(20)]).await, [""; 0], "too old to be worked with");
    }

    #[tokio::test(start_paused = true)]
    async fn a_release_that_was_not_known_at_the_start_is_learnt() {
        let (sender, settings) = watch::channel(Arc::new(Config::default()));
        let ended = tokio::time::timeout(PERIOD * 3, follow(api_server(&[None, Some(37)]), sender)).await;
        assert!(ended.is_err(), "it never ends by itself");
        assert_eq!(settings.borrow().scheduling.followed(), KubeScheduler::V1_37);
    }
}
