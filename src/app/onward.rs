//! The connection between the webhook and the binder of the same process: the binder answers where a pod would be placed now, and the
//! webhook passes on pods that may come.
//!
//! It places nothing: the outlook decides, and the hand-off keeps the hints for which it has room.

use std::{
    ops::ControlFlow,
    sync::{Arc, Mutex, PoisonError, TryLockError},
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use crate::{
    cluster::{BinderView, Handoff, Hinted},
    config::Config,
    object::Pod,
    scheduling::{Details, DryRuns},
    webhook::{
        Handed, Onward,
        review::onward::{Hint, Place},
    },
};

/// The longest time that a dry run waits for an answer: with all else that a review takes, it comes within 5 ms.
const PATIENCE: Duration = Duration::from_millis(4);

/// The shortest time between two looks for nodes that are alike.
const PERIOD: Duration = Duration::from_secs(1);

/// What is known from dry runs before. Who has it answers: others are admitted without an answer, so that other reviews never wait for a dry run.
type Known = Arc<Mutex<DryRuns>>;

/// Answers dry runs from the binder's view, and passes the other pods to the binder; and what has to go on beside for that.
pub(super) fn onward(
    handoff: &Handoff,
    settings: watch::Receiver<Arc<Config>>,
) -> (Onward, impl Future<Output = ()> + Send + 'static) {
    let details = move || settings.borrow().messages.details;
    let known = Known::default();
    let prepared = prepare(handoff.views(), known.clone());
    let place = place(handoff.views(), (known, PATIENCE), details);
    (Onward { place, hint: hint(handoff.clone()) }, prepared)
}

/// Finds out which nodes are alike after the view has changed, so that a dry run finds it out only of the last few.
async fn prepare(mut views: watch::Receiver<Option<BinderView>>, known: Known) {
    while views.changed().await.is_ok() {
        let (views, known) = (views.clone(), known.clone());
        let preparing = move || {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            // Only now: what is known is never of a later view, which may have kinds of cards that this one has not.
            let view = views.borrow().clone();
            if let Some(BinderView { outlook, .. }) = view {
                outlook.prepare(&mut known);
            }
        };
        if let Err(error) = tokio::task::spawn_blocking(preparing).await {
            tracing::error!(%error, "finding out which nodes are alike failed");
        }
        sleep(PERIOD).await;
    }
    std::future::pending::<()>().await;
}

fn hint(handoff: Handoff) -> Hint {
    Arc::new(move |pod| match handoff.hint(pod) {
        Hinted::Taken => Handed::Taken,
        Hinted::Dropped => Handed::Dropped,
    })
}

fn place(
    views: watch::Receiver<Option<BinderView>>,
    (known, patience): (Known, Duration),
    details: impl Fn() -> Details + Send + Sync + 'static,
) -> Place {
    Arc::new(move |pod| {
        let until = Instant::now() + patience;
        let in_time =
            || if Instant::now() < until { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        let mut known = match known.try_lock() {
            Ok(known) => known,
            Err(TryLockError::Poisoned(known)) => known.into_inner(),
            Err(TryLockError::WouldBlock) => return Vec::new(),
        };
        let view = views.borrow().clone();
        view.and_then(|view| told(&view, &mut known, pod, in_time, details())).unwrap_or_default()
    })
}

/// Whoever asks by a dry run may be any user who may create pods.
fn told(
    view: &BinderView,
    known: &mut DryRuns,
    pod: &Pod,
    in_time: impl FnMut() -> ControlFlow<()>,
    details: Details,
) -> Option<Vec<String>> {
    let info = view.reader.pod(pod).0;
    let told = match view.outlook.place_by(known, &info.demand()?, in_time)? {
        Ok(prospect) => {
            let place = match details {
                Details::Full => format!("would now be placed on {}", prospect.place()),
                Details::Own => "would now be placed".to_owned(),
            };
            std::iter::once(place).chain(prospect.elsewhere(details)).collect()
        }
        Err(error) => vec![format!("would not be placed now: {}", error.words(details))],
    };
    Some(told)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        object::Node,
        scheduling::{Event, NodeChange, PodChange, PodList, Scheduler},
    };

    /// A node with one card of 16 GiB, as HAMi's plugin registers it.
    fn node(name: &str, taints: &Value) -> Node {
        let card = json!([{"id": format!("GPU-{name}"), "index": 0, "count": 10, "devmem": 16384, "devcore": 100,
            "type": "NVIDIA A100", "numa": 0, "mode": "hami-core", "health": true}]);
        let annotations = json!({"hami.io/node-nvidia-register": card.to_string()});
        let node = json!({
            "metadata": {"name": name, "uid": name, "resourceVersion": "1", "annotations": annotations},
            "spec": {"taints": taints},
            "status": {"allocatable": {"pods": "110", "cpu": "8"}},
        });
        serde_json::from_value(node).unwrap()
    }

    fn view(nodes: &[Node]) -> BinderView {
        let config = Config::default();
        let reader = Arc::new(config.reader());
        let mut scheduler = Scheduler::standing_by(config.scheduler_settings());
        let nodes = nodes.iter().map(|node| reader.node(node).0).collect();
        scheduler.observe(Event::Node(NodeChange::Listed(nodes)), Timestamp::UNIX_EPOCH);
        scheduler.observe(Event::Pod(PodChange::Listed(PodList::default())), Timestamp::UNIX_EPOCH);
        BinderView { reader, outlook: scheduler.view().outlook() }
    }

    fn pod(changes: impl FnOnce(&mut Value)) -> Pod {
        let limits = json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000", "nvidia.com/gpucores": "30"});
        let mut pod = json!({
            "metadata": {"name": "p", "namespace": "train"},
            "spec": {"schedulerName": "berth", "containers": [{"name": "main", "resources": {"limits": limits}}]},
        });
        changes(&mut pod);
        serde_json::from_value(pod).unwrap()
    }

    /// The answer with this view of the cluster.
    fn told_by(view: Option<BinderView>, patience: Duration, pod: &Pod) -> Vec<String> {
        told_with(view, patience, pod, Details::Full)
    }

    fn told_with(view: Option<BinderView>, patience: Duration, pod: &Pod, details: Details) -> Vec<String> {
        let (_sender, views) = watch::channel(view);
        place(views, (Known::default(), patience), move || details)(pod)
    }

    #[test]
    fn a_dry_run_is_told_counts_and_reasons_where_nodes_are_not_the_askers_business() {
        let view = || Some(view(&[node("gpu-1", &taint()), node("gpu-2", &json!([]))]));
        let told = told_with(view(), LONG, &pod(|_| {}), Details::Own);
        assert_eq!(
            told,
            ["would now be placed", "0/1 other nodes are available: 1 node(s) had untolerated taint(s)."]
        );
        let large = pod(|pod| pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "9".into());
        let expected = "would not be placed now: 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s).";
        assert_eq!(told_with(view(), LONG, &large, Details::Own), [expected]);
    }

    fn taint() -> Value {
        json!([{"key": "keep", "effect": "NoSchedule"}])
    }

    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn a_dry_run_is_told_the_node_the_card_and_why_not_elsewhere() {
        let view = view(&[node("gpu-1", &taint()), node("gpu-2", &json!([])), node("gpu-3", &json!([]))]);
        let told = told_by(Some(view), LONG, &pod(|_| {}));
        assert_eq!(
            told,
            [
                "would now be placed on gpu-2: GPU-gpu-2 (4000 MiB, 30 %)",
                "1/2 other nodes are available: 1 node(s) had untolerated taint(s).",
            ]
        );
    }

    #[test]
    fn a_dry_run_that_fits_nowhere_is_told_why() {
        let large = pod(|pod| pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "9".into());
        let told = told_by(Some(view(&[node("gpu-1", &taint()), node("gpu-2", &json!([]))])), LONG, &large);
        let expected = "would not be placed now: 0/2 nodes are available: 1 Insufficient cpu, \
                        1 node(s) had untolerated taint(s). \
                        nearest: gpu-2 lacks 1 cpu.";
        assert_eq!(told, [expected]);
    }

    #[test]
    fn nothing_is_told_without_an_outlook_too_late_or_of_pods_that_are_not_to_be_placed() {
        let seen = || Some(view(&[node("gpu-1", &json!([]))]));
        assert_eq!(told_by(None, LONG, &pod(|_| {})).len(), 0);
        assert_eq!(told_by(seen(), Duration::ZERO, &pod(|_| {})).len(), 0);
        let not_ours: [fn(&mut Value); 3] = [
            |pod| pod["spec"]["schedulerName"] = "volcano".into(),
            |pod| pod["spec"]["nodeName"] = "gpu-1".into(),
            |pod| pod["spec"]["schedulingGates"] = json!([{"name": "wait"}]),
        ];
        for change in not_ours {
            assert_eq!(told_by(seen(), LONG, &pod(change)).len(), 0);
        }
        assert_eq!(told_by(seen(), LONG, &pod(|_| {})).len(), 1, "the very pod is told a place");
    }

    #[test]
    fn hints_that_nobody_takes_are_dropped_once_there_is_no_room() {
        let handoff = Handoff::default();
        let hint = hint(handoff);
        let handed: Vec<_> = (0..100).map(|_| hint(Box::new(pod(|_| {})))).collect();
        let taken = handed.iter().filter(|handed| **handed == Handed::Taken).count();
        assert_eq!((taken, handed.last()), (64, Some(&Handed::Dropped)));
    }
}
