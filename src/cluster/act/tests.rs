//! What is logged of answers to writes, and how long is read in doubt.

use std::{
    io,
    sync::{Arc, Mutex},
};

use super::{locks::warn_of_refused_lock, *};
use crate::scheduling::LockOutcome;

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
