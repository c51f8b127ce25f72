//! A kind that the API server may serve in two versions, each with all objects: the older version is watched only where the newer one is not served.
//!
//! It must not know what the objects mean, nor how a version is watched.

use futures::{
    StreamExt,
    stream::{self, BoxStream},
};

use crate::scheduling::{Event, ObjectChange, model::kind::Kind};

/// The newer version, and the older one while it is watched.
struct Versions<W> {
    newer: BoxStream<'static, Event>,
    older: Kind,
    watch_older: W,
    watched: Option<BoxStream<'static, Event>>,
    /// Whether it was reported that the older version is not served, and it has not been watched since.
    is_set_aside: bool,
    /// The event that comes next.
    next: Option<Event>,
}

/// The events of the newer version, and those of the `older` one as long as the API server does not serve the newer one. Once the newer one is listed,
/// an event reports that the older one is not served, so that nothing waits for its list and no object is known twice.
pub(super) fn newest_served<W>(
    newer: BoxStream<'static, Event>,
    older: Kind,
    watch_older: W,
) -> BoxStream<'static, Event>
where
    W: Fn() -> BoxStream<'static, Event> + Send + 'static,
{
    let versions = Versions { newer, older, watch_older, watched: None, is_set_aside: false, next: None };
    stream::unfold(versions, async |mut versions| Some((versions.event().await?, versions))).boxed()
}

impl<W: Fn() -> BoxStream<'static, Event>> Versions<W> {
    /// The next event; `None`: the newer version's events have ended.
    async fn event(&mut self) -> Option<Event> {
        if let Some(event) = self.next.take() {
            return Some(event);
        }
        let of_older = async {
            match &mut self.watched {
                Some(watched) => watched.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            event = self.newer.next() => Some(self.take(event?)),
            event = of_older => event,
        }
    }

    /// Takes in an event of the newer version.
    fn take(&mut self, event: Event) -> Event {
        match event {
            Event::Object(ObjectChange::Unserved(_)) => {
                self.watched = Some((self.watch_older)());
                self.is_set_aside = false;
            }
            Event::Object(ObjectChange::Listed(..)) if !self.is_set_aside => {
                self.watched = None;
                self.is_set_aside = true;
                self.next = Some(Event::Object(ObjectChange::Unserved(self.older)));
            }
            _ => {}
        }
        event
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};

    use super::*;
    use crate::scheduling::model::kind::PodGroupKind;

    const NEWER: Kind = Kind::PodGroup(PodGroupKind::Kubernetes);
    const OLDER: Kind = Kind::PodGroup(PodGroupKind::KubernetesAlpha3);

    fn listed(kind: Kind) -> Event {
        Event::Object(ObjectChange::Listed(kind, Vec::new()))
    }

    fn unserved(kind: Kind) -> Event {
        Event::Object(ObjectChange::Unserved(kind))
    }

    /// What has been said, as text: events are not compared.
    async fn said(events: &mut BoxStream<'static, Event>) -> Vec<String> {
        let mut said = Vec::new();
        while let std::task::Poll::Ready(Some(event)) = futures::poll!(events.next()) {
            said.push(format!("{event:?}"));
        }
        said
    }

    fn texts(events: &[Event]) -> Vec<String> {
        events.iter().map(|event| format!("{event:?}")).collect()
    }

    type Senders = Arc<Mutex<Vec<UnboundedSender<Event>>>>;

    /// The events, what sends those of the newer version, and what sends those of each watch of the older one.
    fn versions() -> (BoxStream<'static, Event>, UnboundedSender<Event>, Senders) {
        let (newer, events): (_, UnboundedReceiver<Event>) = unbounded();
        let opened = Senders::default();
        let watches = opened.clone();
        let watch_older = move || {
            let (sender, events) = unbounded();
            watches.lock().unwrap().push(sender);
            events.boxed()
        };
        (newest_served(events.boxed(), OLDER, watch_older), newer, opened)
    }

    #[tokio::test]
    async fn the_older_version_is_watched_only_while_the_newer_one_is_not_served() {
        let (mut events, newer, opened) = versions();
        assert_eq!(said(&mut events).await, texts(&[]));
        assert_eq!(opened.lock().unwrap().len(), 0, "it is not known yet which version is served");

        newer.unbounded_send(unserved(NEWER)).unwrap();
        assert_eq!(said(&mut events).await, texts(&[unserved(NEWER)]));
        let older = opened.lock().unwrap()[0].clone();
        older.unbounded_send(listed(OLDER)).unwrap();
        assert_eq!(said(&mut events).await, texts(&[listed(OLDER)]));

        newer.unbounded_send(listed(NEWER)).unwrap();
        assert_eq!(said(&mut events).await, texts(&[listed(NEWER), unserved(OLDER)]));
        assert!(older.is_closed(), "the older version is still watched");

        newer.unbounded_send(listed(NEWER)).unwrap();
        assert_eq!(said(&mut events).await, texts(&[listed(NEWER)]), "it has been said");
        newer.unbounded_send(unserved(NEWER)).unwrap();
        assert_eq!(said(&mut events).await, texts(&[unserved(NEWER)]));
        assert_eq!(opened.lock().unwrap().len(), 2);
    }

    #[tokio::test]
    async fn an_older_version_beside_the_newer_one_is_never_watched() {
        let (mut events, newer, opened) = versions();
        newer.unbounded_send(listed(NEWER)).unwrap();
        assert_eq!(said(&mut events).await, texts(&[listed(NEWER), unserved(OLDER)]));
        assert_eq!(opened.lock().unwrap().len(), 0);
    }
}
