//! What is logged of answers to writes, and how long is read in doubt.

use std::{
    io,
    sync::{Arc, Mutex},
};

use http::{Request, Response};
use kube::client::Body;

use super::{locks::warn_of_refused_lock, *};
use crate::{
    dialect::Dialects,
    scheduling::{LockOutcome, node_flow::NodeFailure},
};

/// A log that can be read.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The lines that are logged meanwhile.
fn logged(work: impl FnOnce()) -> Vec<String> {
    let log = Log::default();
    let writer = log.clone();
    let log_to = tracing_subscriber::fmt().without_time().with_ansi(false).with_target(false);
    tracing::subscriber::with_default(log_to.with_writer(move || writer.clone()).finish(), work);
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    text.lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn a_refused_write_is_one_warning_and_what_is_tried_again_by_itself_is_none() {
    let pod = PodKey { uid: "u".into(), namespace: "team".into(), name: "p".into() };
    let answer = || "no rights (HTTP status 403)".to_owned();
    let bindings = [
        BindOutcome::Bound,
        BindOutcome::Throttled(cut_off()),
        BindOutcome::Doubtful(cut_off()),
        BindOutcome::Refused(answer()),
    ];
    let lines = logged(|| bindings.iter().for_each(|outcome| warn_of_refused_binding(&pod, "n", outcome)));
    let told = "pod=team/p node=n answer=\"no rights (HTTP status 403)\"";
    assert_eq!(lines, [format!("WARN the API server refused the Binding {told}")]);
    let locks = [
        LockOutcome::Taken { resource_version: "1".to_owned() },
        LockOutcome::Stale,
        LockOutcome::Throttled(cut_off()),
        LockOutcome::Failed(cut_off()),
        LockOutcome::Refused(answer()),
    ];
    let lines = logged(|| locks.iter().for_each(|outcome| warn_of_refused_lock(&pod, "n", outcome)));
    assert_eq!(lines, [format!("WARN the API server refused the node lock {told}")]);
}

#[test]
fn what_another_program_said_is_logged_on_one_short_line() {
    let pod = PodKey { uid: "u".into(), namespace: "team".into(), name: "p".into() };
    let answer = format!("no\nWARN forged {}", "x".repeat(100_000));
    let lines = logged(|| {
        warn_of_refused_binding(&pod, "n", &BindOutcome::Refused(answer.clone()));
        warn_of_refused_lock(&pod, "n", &LockOutcome::Refused(answer.clone()));
    });
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines.iter().all(|line| line.len() < 2000 && line.contains(" more characters)")), "{lines:?}");
}

#[tokio::test]
async fn a_read_that_cannot_be_asked_for_finds_nothing() {
    let unbuilt = || http::Request::get("/a b").body(()).unwrap_err();
    assert_eq!(insist::<(), _>(|| async { Err(kube::Error::HttpError(unbuilt())) }).await, None);
    let unbuilt = || kube::core::request::Error::BuildRequest(unbuilt());
    assert_eq!(insist::<(), _>(|| async { Err(kube::Error::BuildRequest(unbuilt())) }).await, None);
}

/// What carries out effects at an API server that accepts everything, and the paths of what is written there.
fn hands(details: Details) -> (Hands, Arc<Mutex<Vec<String>>>) {
    let paths = Arc::new(Mutex::new(Vec::new()));
    let written = paths.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        written.lock().unwrap().push(request.uri().path().to_owned());
        async { Ok::<_, std::convert::Infallible>(Response::new(Body::from(b"{}".to_vec()))) }
    });
    let hands = Hands {
        client: Client::new(service, "default"),
        reader: Arc::new(Reader::new(Dialects::new(Vec::new()), "berth".to_owned())),
        clock: Clock::System,
        metrics: Metrics::default(),
        fence: Fence::Alone,
        comparer: Comparer::default(),
        details,
    };
    (hands, paths)
}

/// What the condition says once this was said of the pod, how many objects were written for that, and what was logged.
fn said(
    details: Details,
    told: Option<&str>,
    first: bool,
    reason: &PendingReason,
) -> (String, usize, Vec<String>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let entered = runtime.enter();
    let (hands, paths) = hands(details);
    drop(entered);
    let pod = PodKey { uid: "u".into(), namespace: "team".into(), name: "p".into() };
    let (told, resource_version) = (told.map(str::to_owned), "1".to_owned());
    let effect = Effect::TellUnschedulable { pod, resource_version, told, first, reason: reason.clone() };
    let mut answer = None;
    let lines = logged(|| answer = runtime.block_on(hands.act(effect)));
    let Some(Event::Told { message, outcome: TellOutcome::Done, .. }) = answer else { panic!("{answer:?}") };
    let written = paths.lock().unwrap().len();
    (message, written, lines)
}

#[test]
fn a_condition_that_says_just_this_is_not_written_and_what_it_leaves_out_is_logged_when_it_is_new() {
    let reason = PendingReason::Node(NodeFailure::Binding("n1".into(), "no".to_owned()));
    let (full, own) = ("binding to node n1 was refused: no", "binding to a node was refused");
    for (details, text) in [(Details::Full, full), (Details::Own, own)] {
        let lines = || match details {
            Details::Full => Vec::new(),
            Details::Own => vec![format!("INFO in full: {full} pod=team/p")],
        };
        for first in [true, false] {
            let changed = said(details, Some("before"), first, &reason);
            assert_eq!(changed, (text.to_owned(), 2, lines()), "the condition and an Event");
        }
        assert_eq!(
            said(details, Some(text), true, &reason),
            (text.to_owned(), 0, lines()),
            "after a restart"
        );
        assert_eq!(said(details, Some(text), false, &reason), (text.to_owned(), 0, Vec::new()));
    }
}

#[test]
fn a_long_reason_is_known_again_by_its_excerpt() {
    let reason = PendingReason::Request("x".repeat(100_000).into());
    let (text, written, _) = said(Details::Full, None, true, &reason);
    assert!(text.len() <= SUMMARY + crate::excerpt::NOTE && written == 2, "{} bytes", text.len());
    assert_eq!(said(Details::Full, Some(&text), true, &reason).1, 0);
}
