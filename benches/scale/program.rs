//! The installed program as a process: its log, its metrics, its answers to reviews, and its memory.

use std::{
    fs::File,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, ensure};
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{api_server::ApiServer, objects};
use crate::process::{Memory, memory};

/// What the program says once it has listed everything.
const KNOWN: &str = "pods and nodes are known";
/// It is not waited longer for that.
const START: Duration = Duration::from_mins(5);
/// The memory of a program that has nothing to do does not grow for so long.
const SETTLED: Duration = Duration::from_millis(500);

/// A running program, killed when dropped.
pub(crate) struct Program {
    child: Child,
    log: PathBuf,
    client: Client,
    _folder: tempfile::TempDir,
}

impl Program {
    /// Starts it before this API server.
    pub(crate) fn start(
        program: &Path,
        config: Option<&Path>,
        api_server: &ApiServer,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let of = |name: &str| folder.path().join(name);
        let key = rcgen::KeyPair::generate()?;
        let certificate = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()])?.self_signed(&key)?;
        std::fs::write(of("tls.crt"), certificate.pem())?;
        std::fs::write(of("tls.key"), key.serialize_pem())?;
        std::fs::write(of("kubeconfig"), api_server.kubeconfig())?;
        let listen: SocketAddr = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let log = File::create(of("log"))?;
        let mut command = Command::new(program);
        command.args(["serve", "--leader-elect=false", "--listen", &listen.to_string()]);
        command.arg("--tls-cert-file").arg(of("tls.crt")).arg("--tls-private-key-file").arg(of("tls.key"));
        if let Some(config) = config {
            command.arg("--config").arg(config);
        }
        command.env_remove("BERTH_CONFIG").env_remove("POD_NAMESPACE").env("NO_COLOR", "1");
        command.env("KUBECONFIG", of("kubeconfig")).stdin(Stdio::null());
        let child = command.stdout(log.try_clone()?).stderr(log).spawn().context("the program")?;
        let mut config = kube::Config::new(format!("https://{listen}").parse()?);
        config.accept_invalid_certs = true;
        Ok(Self { child, log: of("log"), client: Client::try_from(config)?, _folder: folder })
    }

    /// Waits until it has listed everything; when it said so.
    pub(crate) async fn known(&mut self) -> anyhow::Result<Timestamp> {
        let until = Instant::now() + START;
        loop {
            let text = std::fs::read_to_string(&self.log)?;
            if let Some(line) = text.lines().find(|line| line.contains(KNOWN)) {
                let at = line.split_whitespace().next().context("a line of the log has its time")?;
                return Ok(at.parse()?);
            }
            let ended = self.child.try_wait()?;
            ensure!(ended.is_none() && Instant::now() < until, "the program does not get ready: {text}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Its memory once that grows no more: the rules of admission take in the nodes after the binder.
    pub(crate) async fn settled(&self) -> anyhow::Result<Memory> {
        let mut before = self.memory()?;
        loop {
            sleep(SETTLED).await;
            let memory = self.memory()?;
            if memory.rss_kib <= before.rss_kib {
                return Ok(memory);
            }
            before = memory;
        }
    }

    pub(crate) fn memory(&self) -> anyhow::Result<Memory> {
        memory(self.child.id())
    }

    /// Its metrics, with this query.
    pub(crate) async fn scrape(&self, query: &str) -> anyhow::Result<String> {
        let request = http::Request::get(format!("/metrics{query}"))
            .header(http::header::ACCEPT, "application/openmetrics-text")
            .body(Vec::new())?;
        Ok(self.client.request_text(request).await?)
    }

    /// What the webhook that judges the final pod answers to a dry run of this pod, and how long that takes.
    pub(crate) async fn dry_run(&self, pod: &Value) -> anyhow::Result<(Vec<String>, Duration)> {
        let body = serde_json::to_vec(&objects::dry_run(pod))?;
        let request = http::Request::post("/validate")
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(body)?;
        let began = Instant::now();
        let answer: Value = self.client.request(request).await?;
        let took = began.elapsed();
        let warnings = answer["response"]["warnings"].as_array().cloned().unwrap_or_default();
        Ok((warnings.iter().filter_map(|warning| warning.as_str().map(str::to_owned)).collect(), took))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // An error says that it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The value of a series of a page of metrics.
pub(crate) fn value(page: &str, series: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_default()
}
