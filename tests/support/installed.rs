//! The program as it is installed: what `berth manifests` prints, applied, and replicas of `berth serve` as processes.
//!
//! It must not give the program a right that the manifests do not give it.
#![allow(clippy::unwrap_used, reason = "a step that a test stands on fails as the test does")]

use std::{
    fs::File,
    net::{SocketAddr, TcpListener},
    process::{Child, Command, ExitStatus, Output, Stdio},
    time::Duration,
};

use berth::cli::manifests::{self, ManifestsArgs};
use k8s_openapi::api::{authorization::v1::SubjectAccessReview, coordination::v1::Lease};
use kube::{
    Api, Client, Discovery,
    api::{DynamicObject, PostParams},
    core::GroupVersionKind,
    discovery::Scope,
};
use serde_json::{Value, json};

use super::{
    controlplane::{ControlPlane, Options},
    identity::Identity,
};

/// Where it is installed.
pub const NAMESPACE: &str = "berth-system";
const NAME: &str = "berth";
/// The account that it is installed with.
pub const ACCOUNT: &str = "system:serviceaccount:berth-system:berth";
/// After this time a process that was told to end has not.
const END_LIMIT: Duration = Duration::from_mins(1);

/// A running `berth serve`, killed when dropped.
pub struct Replica {
    child: Child,
}

/// One call of the program, without settings.
pub fn call(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
    command.args(arguments).env_remove("BERTH_CONFIG").output().unwrap()
}

/// The JSON that a call has printed.
pub fn printed(output: &Output) -> Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"))
}

impl Replica {
    /// Starts one with the rights of the installed account; what it says is in the control plane's directory.
    pub fn start(plane: &ControlPlane, name: &str, arguments: &[&str]) -> Self {
        Self::start_as(plane, ACCOUNT, name, free_address(), arguments)
    }

    /// As [`Self::start`], with the rights of this account and the webhook at this address.
    pub fn start_as(
        plane: &ControlPlane,
        account: &str,
        name: &str,
        listen: SocketAddr,
        arguments: &[&str],
    ) -> Self {
        let log = File::create(plane.directory().join(format!("{name}.log"))).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
        command.args(["serve", "--listen", &listen.to_string(), "--tls-san", "127.0.0.1"]).args(arguments);
        command.env_remove("POD_NAMESPACE").env("KUBECONFIG", plane.kubeconfig(account)).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        Self { child: command.spawn().unwrap() }
    }

    /// Ends it as `kill -9` does.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Tells it to end.
    pub fn terminate(&self) {
        assert!(Command::new("kill").arg(self.child.id().to_string()).status().unwrap().success());
    }

    /// Tells it to end, and waits until it has.
    pub async fn stop(self) -> ExitStatus {
        self.terminate();
        self.ended().await
    }

    /// Waits until it has ended, after it was told to.
    pub async fn ended(mut self) -> ExitStatus {
        let ended = async {
            loop {
                match self.child.try_wait().unwrap() {
                    Some(status) => return status,
                    None => super::server::pause().await,
                }
            }
        };
        tokio::time::timeout(END_LIMIT, ended).await.expect("it ends in time")
    }

    /// The memory that it holds now and held at most, in MiB.
    pub fn memory(&self) -> (u64, u64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let of = |name: &str| {
            let kilobytes =
                status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
            kilobytes.and_then(|kilobytes| kilobytes.parse::<u64>().ok()).unwrap_or_default() / 1024
        };
        (of("VmRSS:"), of("VmHWM:"))
    }

    /// The processor time that it has used.
    pub fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // The command's name, in brackets, may hold anything. User and system time are fields 14 and 15, in hundredths of a second.
        let fields = stat.rsplit_once(')').unwrap().1.split_whitespace().skip(11).take(2);
        fields.map(|ticks| Duration::from_millis(ticks.parse::<u64>().unwrap() * 10)).sum()
    }

    /// Whether a Lease names this process as its holder: the second part of an identity is the process's number.
    pub fn is_named_by(&self, holder: &str) -> bool {
        holder.split('_').nth(1) == Some(self.child.id().to_string().as_str())
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // An error says that it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the control plane must know of the program's account.
pub fn options() -> Options {
    Options { identities: vec![Identity::service_account(NAMESPACE, NAME)], ..Options::default() }
}

/// An address that nobody listens on.
pub fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Creates everything that `berth manifests` prints for these arguments, with the webhook at that address.
pub async fn apply_manifests(client: &Client, webhook: SocketAddr, args: ManifestsArgs) {
    let args = ManifestsArgs { webhook_url: Some(format!("https://{webhook}")), ..args };
    let discovery = Discovery::new(client.clone()).run().await.unwrap();
    for object in manifests::objects(&args, &manifests::InstallationSettings::default()).unwrap() {
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let kind = GroupVersionKind::try_from(object.types.as_ref().unwrap()).unwrap();
        let (resource, capabilities) =
            discovery.resolve_gvk(&kind).unwrap_or_else(|| panic!("no kind {kind:?}"));
        let api: Api<DynamicObject> = match (&capabilities.scope, &object.metadata.namespace) {
            (Scope::Namespaced, Some(namespace)) => {
                Api::namespaced_with(client.clone(), namespace, &resource)
            }
            _ => Api::all_with(client.clone(), &resource),
        };
        api.create(&PostParams::default(), &object)
            .await
            .unwrap_or_else(|error| panic!("{object:?}: {error}"));
    }
}

/// Who holds the Lease.
pub async fn holder(client: &Client) -> kube::Result<Option<String>> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    let lease = leases.get_opt(NAME).await?;
    let holder = lease.and_then(|lease| lease.spec?.holder_identity);
    Ok(holder.filter(|holder| !holder.is_empty()))
}

/// Whether the API server would let this account do that in a namespace: `verb group/resource[/subresource][:name]`.
pub async fn may(client: &Client, namespace: &str, account: &str, what: &str) -> bool {
    let (verb, rest) = what.split_once(' ').unwrap();
    let (group, rest) = rest.split_once('/').unwrap();
    let (resource, name) = rest.split_once(':').unwrap_or((rest, ""));
    let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
    let attributes = json!({
        "verb": verb, "group": group, "resource": resource, "subresource": part, "name": name, "namespace": namespace,
    });
    let review =
        serde_json::from_value(json!({"spec": {"user": account, "resourceAttributes": attributes}})).unwrap();
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap().allowed
}
