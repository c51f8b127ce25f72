//! How often a picture is published, and how hints are taken.

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::{
    dialect::Dialects,
    scheduling::{
        NodeChange, NodeInfo, ObjectChange, PodChange, PodList, QuotaChange, model::kind::Kind,
        plugin::score::weights::ScoreWeights, scheduler::Settings,
    },
};

fn node(name: &str) -> Event {
    Event::Node(NodeChange::Seen(Box::new(NodeInfo {
        name: name.into(),
        uid: name.into(),
        resource_version: "1".to_owned(),
        ..NodeInfo::default()
    })))
}

fn reader() -> Arc<Reader> {
    Arc::new(Reader::new(Dialects::default(), "berth".to_owned()))
}

fn scheduler() -> Scheduler {
    let lock_expiry = SignedDuration::from_mins(5);
    Scheduler::new(Settings {
        device_resources: [].into(),
        lock_expiry,
        weights: ScoreWeights::default(),
        arguments: crate::scheduling::model::plugin_arguments::PluginArguments::default(),
        preemption: None,
        rooms: None,
        zones: crate::scheduling::model::tdm::RevocableZones::default(),
        gangs: None,
        held_percent: 50,
        claims: crate::scheduling::model::claim_use::DeviceClaims::Served,
        pace: crate::scheduling::scheduler::Pace::Shared,
    })
}

fn observe(scheduler: &mut Scheduler, events: impl IntoIterator<Item = Event>) {
    events.into_iter().for_each(|event| scheduler.observe(event, Timestamp::UNIX_EPOCH));
}

fn nodes(views: &watch::Receiver<Option<BinderView>>) -> Option<usize> {
    views.borrow().as_ref().map(|view| view.outlook.nodes().count())
}

#[tokio::test(start_paused = true)]
async fn the_first_picture_comes_with_the_first_lists_and_the_next_no_sooner_than_a_period_later() {
    let (handoff, mut scheduler) = (Handoff::default(), scheduler());
    let (views, mut publisher) = (handoff.views(), handoff.publisher(reader()));
    observe(
        &mut scheduler,
        [
            Event::Node(NodeChange::Listed(Vec::new())),
            Event::Quota(QuotaChange::Listed(Vec::new())),
            node("a"),
        ],
    );
    observe(
        &mut scheduler,
        Kind::ALL.iter().map(|kind| Event::Object(ObjectChange::Listed(*kind, Vec::new()))),
    );
    assert_eq!(publisher.due(&scheduler), None, "pods have not been listed");
    observe(&mut scheduler, [Event::Pod(PodChange::Listed(PodList::default()))]);
    publisher.publish(&scheduler);
    assert_eq!(nodes(&views), Some(1));
    assert_eq!(publisher.due(&scheduler), None, "nothing has changed since");
    let began = Instant::now();
    observe(&mut scheduler, [node("b")]);
    publisher.publish(&scheduler);
    assert_eq!(nodes(&views), Some(1), "too soon");
    let due = publisher.due(&scheduler).unwrap();
    assert_eq!(due - began, PERIOD);
    sleep_until(due).await;
    publisher.publish(&scheduler);
    assert_eq!(nodes(&views), Some(2));
    observe(&mut scheduler, [Event::Node(NodeChange::Gone("a".into()))]);
    sleep_until(publisher.due(&scheduler).expect("a node that goes is a change")).await;
    publisher.publish(&scheduler);
    assert_eq!(nodes(&views), Some(1));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_published_while_nobody_looks() {
    let (handoff, mut scheduler) = (Handoff::default(), scheduler());
    let mut publisher = handoff.publisher(reader());
    let listed = [
        Event::Node(NodeChange::Listed(Vec::new())),
        Event::Quota(QuotaChange::Listed(Vec::new())),
        Event::Pod(PodChange::Listed(PodList::default())),
    ];
    observe(&mut scheduler, listed);
    observe(
        &mut scheduler,
        Kind::ALL.iter().map(|kind| Event::Object(ObjectChange::Listed(*kind, Vec::new()))),
    );
    assert_eq!(publisher.due(&scheduler), None);
    let views = handoff.views();
    publisher.publish(&scheduler);
    assert_eq!(nodes(&views), Some(0));
}

#[tokio::test(start_paused = true)]
async fn hints_wait_for_one_loop_after_the_other() {
    let handoff = Handoff::default();
    assert_eq!(handoff.hint(Box::default()), Hinted::Taken);
    let first = handoff.inbox(reader());
    first.next().await;
    assert!(futures::poll!(std::pin::pin!(first.next())).is_pending());
    drop(first);
    for _ in 0..ROOM {
        assert_eq!(handoff.hint(Box::default()), Hinted::Taken);
    }
    assert_eq!(handoff.hint(Box::default()), Hinted::Dropped);
    handoff.inbox(reader()).next().await;
    assert_eq!(handoff.hint(Box::default()), Hinted::Taken);
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_rests_takes_no_hint() {
    let handoff = Handoff::default();
    let mut inbox = handoff.inbox(reader());
    inbox.rests_until = Instant::now() + PERIOD;
    let began = Instant::now();
    handoff.hint(Box::default());
    inbox.next().await;
    assert_eq!(began.elapsed(), PERIOD);
}
