//! The independent checker of `tests/checker`: built by Go, run beside a test, asked for its judgement.
//!
//! It must not judge by itself, nor hand the checker anything that the program under test knows.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use serde_json::Value;

use super::controlplane::absent;

/// The checker's program, built.
#[derive(Clone, Debug)]
pub struct Checker(PathBuf);

/// A checker that records; it ends with its standard input.
pub struct Recording {
    child: Child,
    checker: Checker,
    history: PathBuf,
}

impl Checker {
    /// The checker; where it can't be built, [`absent`] says so and `None` is returned.
    pub fn find() -> Option<Self> {
        static BUILT: OnceLock<Result<Checker, String>> = OnceLock::new();
        match BUILT.get_or_init(Self::build) {
            Ok(checker) => Some(checker.clone()),
            Err(reason) => {
                absent("the checker, which Go builds", reason);
                None
            }
        }
    }

    /// Builds it; Go's own cache makes that cheap when nothing has changed.
    fn build() -> Result<Self, String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/checker");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("checker");
        let mut command = Command::new("go");
        command.args(["build", "-trimpath", "-o"]).arg(&program).arg(".");
        let output = command.env("CGO_ENABLED", "0").current_dir(&source).output();
        let output = output.map_err(|error| format!("go: {error}"))?;
        if output.status.success() {
            return Ok(Self(program));
        }
        Err(format!("go build: {}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
    }

    /// Begins to record what that API server shows; returns once it has listed.
    pub fn record(&self, kubeconfig: &Path, history: PathBuf) -> Result<Recording, String> {
        let mut command = Command::new(&self.0);
        command.arg("watch").arg(kubeconfig).arg(&history).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("checker: {error}"))?;
        let out = child.stdout.take().ok_or("the checker has no standard output")?;
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).map_err(|error| format!("checker: {error}"))?;
        let recording = Recording { child, checker: self.clone(), history };
        if line.trim_end() == "watching" { Ok(recording) } else { Err(format!("the checker says `{line}`")) }
    }

    /// What a recorded history comes to.
    pub fn judge(&self, history: &Path) -> Result<Value, String> {
        let output = Command::new(&self.0).arg("judge").arg(history).output();
        let output = output.map_err(|error| format!("checker: {error}"))?;
        let refused = || String::from_utf8_lossy(&output.stderr).into_owned();
        let report: Value = serde_json::from_slice(&output.stdout).map_err(|_| refused())?;
        let none = |what: &str| report[what].as_array().is_some_and(Vec::is_empty);
        let sound = none("violations") && none("lost");
        if output.status.code() == Some(i32::from(!sound)) { Ok(report) } else { Err(refused()) }
    }
}

impl Recording {
    /// Ends the recording once it has come to what the API server lists and no pod is lost, or will not be found; judges it.
    pub fn judge(mut self) -> Result<Value, String> {
        drop(self.child.stdin.take());
        let status = self.child.wait().map_err(|error| format!("checker: {error}"))?;
        if !status.success() {
            return Err(format!("the checker ended with {status}"));
        }
        self.checker.judge(&self.history)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // An error says that it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
