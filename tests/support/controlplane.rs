//! Runs a real etcd and kube-apiserver for one test, on loopback ports and a directory of its own.
//!
//! It must not outlive the test: its servers are killed on drop and end by themselves when the test process is gone.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use super::build::{Programs, Release};
use super::identity::{Identity, write_credentials};
use super::server::{Server, pause, say};

/// What a test may ask for beside the standing flags.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Callers beside `admin`.
    pub identities: Vec<Identity>,
    /// Appended to the flags of kube-apiserver.
    pub apiserver_flags: Vec<String>,
    /// How kube-apiserver calls webhooks.
    pub webhook_calls: WebhookCalls,
    /// How often etcd and kube-apiserver collect garbage.
    pub garbage_collection: GarbageCollection,
}

/// Flags with which kube-apiserver rejects no request for load: measurements are of speed, not of limits.
pub const LIMITLESS: [&str; 3] = [
    "--max-requests-inflight=0",
    "--max-mutating-requests-inflight=0",
    "--enable-priority-and-fairness=false",
];

/// How often a Go program collects garbage.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum GarbageCollection {
    /// Only once it uses 768 MiB, which saves a third of the processor time that the start of a control plane takes: most tests start one.
    #[default]
    Late,
    /// As often as it does by default: for measurements.
    Usual,
}

impl GarbageCollection {
    fn of(self, command: &mut Command) {
        if self == Self::Late {
            command.envs([("GOGC", "off"), ("GOMEMLIMIT", "768MiB")]);
        }
    }
}

/// The protocol in which kube-apiserver calls webhooks.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum WebhookCalls {
    /// What it chooses: HTTP/2 on the loopback addresses of the tests.
    #[default]
    Chosen,
    /// HTTP/1.1, as it calls every webhook that is not on its own host (`k8s.io/apiserver/pkg/util/webhook/client.go`).
    Http1,
}

/// etcd and kube-apiserver, running.
pub struct ControlPlane {
    programs: Programs,
    options: Options,
    directory: PathBuf,
    ports: Ports,
    etcd: Option<Server>,
    apiserver: Option<Server>,
    schedulers: Vec<Server>,
    others: Vec<Server>,
}

#[derive(Clone, Copy, Debug)]
struct Ports {
    etcd: u16,
    peer: u16,
    apiserver: u16,
    witness: u16,
}

const ADMIN: &str = "admin";
const START_TRIES: u32 = 3;

impl ControlPlane {
    /// A ready API server; `None`, said on standard error, where this machine can neither find nor build one.
    ///
    /// With `BERTH_REQUIRE_CONTROLPLANE=1` the absence panics instead.
    pub async fn start(options: Options) -> Option<Self> {
        let found =
            tokio::task::spawn_blocking(Programs::find).await.expect("finding programs does not panic");
        let programs = match found {
            Ok(programs) => programs,
            Err(reason) => {
                absent("etcd and kube-apiserver, and there is neither Go nor a binary", &reason);
                return None;
            }
        };
        for attempt in 1..=START_TRIES {
            match Self::try_start(programs.clone(), options.clone()).await {
                Ok(plane) => return Some(plane),
                Err(error) => say(&format!("control plane, attempt {attempt}: {error}")),
            }
        }
        panic!("the control plane did not start in {START_TRIES} attempts");
    }

    async fn try_start(programs: Programs, mut options: Options) -> Result<Self, String> {
        options.identities.push(Identity::new(ADMIN, &["system:masters"]));
        let directory = fresh_directory()?;
        write_credentials(&directory, &options.identities)?;
        let ports = Ports::free()?;
        let mut plane = Self {
            programs,
            options,
            directory,
            ports,
            etcd: None,
            apiserver: None,
            schedulers: Vec::new(),
            others: Vec::new(),
        };
        plane.start_etcd().await?;
        plane.start_apiserver().await?;
        Ok(plane)
    }

    /// The whole access: a client of `system:masters`.
    pub fn admin(&self) -> kube::Client {
        self.client(ADMIN)
    }

    /// A client of `admin` or of one of the identities in the options.
    pub fn client(&self, user: &str) -> kube::Client {
        self.client_at(user, self.ports.apiserver)
    }

    fn client_at(&self, user: &str, port: u16) -> kube::Client {
        kube::Client::try_from(self.config_at(user, port))
            .expect("the configuration holds a url, a certificate and a token")
    }

    /// As [`Self::client`], for a test that changes time-outs or retries first.
    pub fn config(&self, user: &str) -> kube::Config {
        self.config_at(user, self.ports.apiserver)
    }

    fn config_at(&self, user: &str, port: u16) -> kube::Config {
        let certificate =
            std::fs::read(self.directory.join("serving.der")).expect("written before the start");
        let url = format!("https://127.0.0.1:{port}").parse().expect("a well-formed url");
        let mut config = kube::Config::new(url);
        config.root_cert = Some(vec![certificate]);
        config.auth_info.token = Some(self.identity(user).token().into());
        config
    }

    /// A kubeconfig file for one identity, for programs that take a path.
    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        self.kubeconfig_at(user, self.ports.apiserver)
    }

    fn kubeconfig_at(&self, user: &str, port: u16) -> PathBuf {
        let path = self.directory.join(format!("{}-{port}.kubeconfig", user.replace(':', "-")));
        let content = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {
                "server": format!("https://127.0.0.1:{port}"),
                "certificate-authority": self.directory.join("serving.crt"),
            }}],
            "users": [{"name": user, "user": {"token": self.identity(user).token()}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
        });
        std::fs::write(&path, content.to_string()).expect("the directory is ours");
        path
    }

    /// The API server's own metrics in the text exposition format.
    pub async fn metrics(&self) -> Result<String, kube::Error> {
        let request = http::Request::get("/metrics").body(Vec::new()).expect("a well-formed request");
        self.admin().request_text(request).await
    }

    /// Where logs and data are, for a test that wants to quote them.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Kills the API server as `kill -9` does.
    pub fn kill_apiserver(&mut self) {
        self.apiserver = None;
    }

    /// Kills etcd as `kill -9` does; what it acknowledged is in its directory.
    pub fn kill_etcd(&mut self) {
        self.etcd = None;
    }

    /// Starts etcd on the same port and data, after [`Self::kill_etcd`].
    pub async fn start_etcd(&mut self) -> Result<(), String> {
        let client = format!("http://127.0.0.1:{}", self.ports.etcd);
        let mut command = self.programs.command("etcd")?;
        command.arg(format!("--data-dir={}", self.directory.join("etcd").display())).args([
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls=http://127.0.0.1:{}", self.ports.peer),
            "--unsafe-no-fsync=true".to_owned(),
        ]);
        self.options.garbage_collection.of(&mut command);
        let mut server = Server::start("etcd", command, &self.directory)?;
        server.ready(etcd_is_healthy(self.ports.etcd)).await?;
        self.etcd = Some(server);
        Ok(())
    }

    /// Starts the API server on the same port, after [`Self::kill_apiserver`]; returns when it is ready.
    pub async fn start_apiserver(&mut self) -> Result<(), String> {
        let server = self.serve_api("kube-apiserver", self.ports.apiserver, &[]).await?;
        self.apiserver = Some(server);
        Ok(())
    }

    /// Starts a second API server on the same etcd, which no `kill_` reaches; returns a kubeconfig of `admin` for it.
    ///
    /// It has no watch cache: its watches come from etcd and go on from any version that etcd still holds, so that whoever reads here
    /// misses no event when the other servers die.
    pub async fn start_witness(&mut self) -> Result<PathBuf, String> {
        let server = self.serve_api("witness", self.ports.witness, &["--watch-cache=false"]).await?;
        self.others.push(server);
        Ok(self.kubeconfig_at(ADMIN, self.ports.witness))
    }

    async fn serve_api(&self, name: &'static str, port: u16, flags: &[&str]) -> Result<Server, String> {
        let mut command = self.programs.command("kube-apiserver")?;
        command.args(self.apiserver_flags(port)).args(&self.options.apiserver_flags).args(flags);
        if self.options.webhook_calls == WebhookCalls::Http1 {
            // Of its clients, not of what it serves (`k8s.io/apimachinery/pkg/util/net/http.go`).
            command.env("DISABLE_HTTP2", "true");
        }
        self.options.garbage_collection.of(&mut command);
        let mut server = Server::start(name, command, &self.directory)?;
        let client = self.client_at(ADMIN, port);
        server
            .ready(async move {
                while !is_ready(&client).await {
                    pause().await;
                }
            })
            .await?;
        Ok(server)
    }

    /// Makes etcd forget everything before its present revision, as the API server has it do every five minutes.
    pub async fn compact_etcd(&self) -> Result<u64, String> {
        let any_key = serde_json::json!({"key": "AA=="});
        let answer = ask_etcd(self.ports.etcd, "/v3/kv/range", &any_key).await?;
        let revision = answer["header"]["revision"].as_str().and_then(|text| text.parse::<u64>().ok());
        let revision = revision.ok_or_else(|| format!("etcd names no revision: {answer}"))?;
        let body = serde_json::json!({"revision": revision.to_string(), "physical": true});
        ask_etcd(self.ports.etcd, "/v3/kv/compaction", &body).await.map(|_| revision)
    }

    /// Runs a kube-scheduler with this configuration file's text, which names a kubeconfig; the number of its process.
    pub fn start_scheduler(&mut self, configuration: &str) -> Result<u32, String> {
        let path = self.directory.join(format!("scheduler-{}.yaml", self.schedulers.len()));
        std::fs::write(&path, configuration).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut command = self.programs.command("kube-scheduler")?;
        command.arg(format!("--config={}", path.display())).args(["--secure-port=0"]);
        // It may see a pod go before its extender does: it then hears that nothing has changed, and asks again after this time.
        command.arg("--pod-max-in-unschedulable-pods-duration=5s");
        let scheduler = Server::start("kube-scheduler", command, &self.directory)?;
        let pid = scheduler.pid();
        self.schedulers.push(scheduler);
        Ok(pid)
    }

    /// As [`Self::start_scheduler`], as this user and with one profile of this name, for measurements: it may send as many requests as upstream's
    /// own benchmark lets it (test/integration/scheduler_perf).
    pub fn start_limitless_scheduler(&mut self, user: &str, profile: &str) -> Result<u32, String> {
        let kubeconfig = self.kubeconfig(user).display().to_string();
        self.start_scheduler(&format!(
            "apiVersion: kubescheduler.config.k8s.io/v1\n\
             kind: KubeSchedulerConfiguration\n\
             clientConnection: {{kubeconfig: {kubeconfig}, qps: 5000, burst: 5000}}\n\
             leaderElection: {{leaderElect: false}}\n\
             profiles: [{{schedulerName: {profile}}}]\n"
        ))
    }

    /// Ends every kube-scheduler.
    pub fn stop_schedulers(&mut self) {
        self.schedulers.clear();
    }

    fn identity(&self, user: &str) -> &Identity {
        let named = self.options.identities.iter().find(|identity| identity.user == user);
        named.unwrap_or_else(|| panic!("{user} is not among the identities of this control plane"))
    }

    fn apiserver_flags(&self, port: u16) -> Vec<String> {
        let file = |name: &str| self.directory.join(name).display().to_string();
        vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.ports.etcd),
            format!("--secure-port={port}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--cert-dir={}", file("certs")),
            format!("--tls-cert-file={}", file("serving.crt")),
            format!("--tls-private-key-file={}", file("serving.key")),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--allow-privileged=true".to_owned(),
            format!("--service-account-issuer=https://127.0.0.1:{}/", self.ports.apiserver),
            format!("--service-account-key-file={}", file("sa.pub")),
            format!("--service-account-signing-key-file={}", file("sa.key")),
            "--authorization-mode=RBAC".to_owned(),
            format!("--token-auth-file={}", file("tokens.csv")),
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
        ]
        .into_iter()
        .chain(served().iter().map(ToString::to_string))
        .collect()
    }
}

/// What is served besides: rules that taint devices since 1.36, and without being asked for since 1.37; what devices take of their nodes has the fields
/// that Berth reads since 1.37. Extended resources by claims and shares of devices are on by default in 1.36, and not in 1.34.
fn served() -> &'static [&'static str] {
    const RULES: &str = "--runtime-config=resource.k8s.io/v1beta2/devicetaintrules=true";
    match Release::of_tests() {
        Ok(Release::V1_34) => &["--feature-gates=DRAExtendedResource=true,DRAConsumableCapacity=true"],
        Ok(Release::V1_37) => {
            &["--feature-gates=DRADeviceTaintRules=true,DRANodeAllocatableResources=true", RULES]
        }
        Ok(Release::Usual) | Err(_) => &["--feature-gates=DRADeviceTaintRules=true", RULES],
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.schedulers.clear();
        self.others.clear();
        self.apiserver = None;
        self.etcd = None;
        if std::thread::panicking() {
            say(&format!("logs of the control plane stay in {}", self.directory.display()));
        } else if let Err(error) = std::fs::remove_dir_all(&self.directory) {
            say(&format!("{}: {error}", self.directory.display()));
        }
    }
}

impl Ports {
    /// Four ports that nobody listens on; another process may still take one first, hence the attempts.
    fn free() -> Result<Self, String> {
        let bind =
            || std::net::TcpListener::bind("127.0.0.1:0").map_err(|error| format!("loopback port: {error}"));
        let held = [bind()?, bind()?, bind()?, bind()?];
        let mut ports = held.iter().map(|listener| listener.local_addr().map(|address| address.port()));
        let mut next =
            || ports.next().expect("four listeners").map_err(|error| format!("loopback port: {error}"));
        Ok(Self { etcd: next()?, peer: next()?, apiserver: next()?, witness: next()? })
    }
}

/// Says on standard error that a test was not run for want of something; with `BERTH_REQUIRE_CONTROLPLANE=1` it panics.
pub fn absent(what: &str, reason: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let required = std::env::var_os("BERTH_REQUIRE_CONTROLPLANE").is_some_and(|value| value == "1");
    assert!(!required, "{test} needs {what}, and BERTH_REQUIRE_CONTROLPLANE=1 asks for it: {reason}");
    say(&format!("NOT RUN: {test}: it needs {what}: {reason}"));
}

fn fresh_directory() -> Result<PathBuf, String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("plane-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if path.exists() {
        std::fs::remove_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

async fn is_ready(client: &kube::Client) -> bool {
    let request = http::Request::get("/readyz").body(Vec::new()).expect("a well-formed request");
    client.request_text(request).await.is_ok()
}

async fn etcd_is_healthy(port: u16) {
    let ask = async || -> std::io::Result<bool> {
        let answer = exchange(port, "GET /health HTTP/1.0\r\n\r\n").await?;
        Ok(answer.contains("\"true\""))
    };
    while !ask().await.unwrap_or(false) {
        pause().await;
    }
}

/// Asks etcd's gateway, which speaks JSON.
async fn ask_etcd(port: u16, path: &str, body: &serde_json::Value) -> Result<serde_json::Value, String> {
    let body = body.to_string();
    let head =
        format!("POST {path} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}", body.len());
    let failed = |error: &dyn std::fmt::Display| format!("etcd {path}: {error}");
    let answer = exchange(port, &format!("{head}\r\n\r\n{body}")).await.map_err(|error| failed(&error))?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| failed(&answer))?;
    if !head.contains(" 200 ") {
        return Err(failed(&answer));
    }
    serde_json::from_str(body).map_err(|error| failed(&error))
}

async fn exchange(port: u16, request: &str) -> std::io::Result<String> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
