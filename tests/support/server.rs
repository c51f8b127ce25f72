//! One server process of a test: its log, its readiness and its end.
//!
//! It must not know what the process serves.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

const START_LIMIT: Duration = Duration::from_secs(90);

/// Writes past libtest's capture, which would hide it in a test that passes.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "berth tests: {text}");
}

/// One process, killed on drop. Our own program also ends with its standard input, which this holds open.
pub struct Server {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Server {
    pub fn start(
        name: &'static str,
        mut command: std::process::Command,
        directory: &Path,
    ) -> Result<Self, String> {
        let log = directory.join(format!("{name}.log"));
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&log);
        let file = file.map_err(|error| format!("{}: {error}", log.display()))?;
        let copy = file.try_clone().map_err(|error| format!("{}: {error}", log.display()))?;
        let child = command.stdin(Stdio::piped()).stdout(file).stderr(copy).spawn();
        let child = child.map_err(|error| format!("{name}: {error}"))?;
        Ok(Self { name, child, log })
    }

    /// The number of the process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for `ready`, for the process to end, or for the limit.
    pub async fn ready(&mut self, ready: impl Future<Output = ()>) -> Result<(), String> {
        let ended = async {
            loop {
                match self.child.try_wait() {
                    Ok(None) => pause().await,
                    Ok(Some(status)) => return status.to_string(),
                    Err(error) => return error.to_string(),
                }
            }
        };
        let outcome = tokio::time::timeout(START_LIMIT, async {
            tokio::select! { () = ready => Ok(()), status = ended => Err(status) }
        });
        match outcome.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(status)) => Err(format!("{} ended with {status}: {}", self.name, self.last_words())),
            Err(_) => Err(format!("{} is not ready after {START_LIMIT:?}: {}", self.name, self.last_words())),
        }
    }

    fn last_words(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(15).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        if let Err(error) = killed {
            say(&format!("{}: {error}", self.name));
        }
    }
}

/// Between two looks at a process that tells nobody when it is ready.
pub async fn pause() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}
