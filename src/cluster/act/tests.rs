//! What is logged of answers to writes.

use std::{
    io,
    sync::{Arc, Mutex},
};

use super::*;

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
    assert_eq!(lines, [format!("WARN the API server refuses the Binding {told}")]);
    let locks = [
        LockOutcome::Taken { resource_version: "1".to_owned() },
        LockOutcome::Stale,
        LockOutcome::Throttled(cut_off()),
        LockOutcome::Failed(cut_off()),
        LockOutcome::Refused(answer()),
    ];
    let lines = logged(|| locks.iter().for_each(|outcome| warn_of_refused_lock(&pod, "n", outcome)));
    assert_eq!(lines, [format!("WARN the API server refuses the node lock {told}")]);
}
