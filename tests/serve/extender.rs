//! `berth manifests --extender` as `docs/extender.md` installs it, with the real kube-scheduler of its configuration.

use std::{
    net::{IpAddr, SocketAddr, UdpSocket},
    path::Path,
    process::Command,
};

use berth::cli::manifests::{self, InstallationSettings, ManifestsArgs};
use k8s_openapi::api::core::v1 as core;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::{
    serve::{cluster, runs, until},
    support::{
        controlplane::{ControlPlane, Options, absent},
        identity::Identity,
        installed::{NAMESPACE, Replica, apply_manifests, free_address},
    },
};

const WEBHOOK: &str = "system:serviceaccount:berth-system:berth-webhook";
const BINDER: &str = "system:serviceaccount:berth-system:berth-binder";
/// Where the Deployment mounts the Secret, and where the documented configuration reads it.
const FOLDER: &str = "/etc/berth-extender";
const URL: &str = "https://berth-extender.berth-system.svc:443";

/// An address of this machine whose peers do not count as peers on the same host; `None`: it has no network.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // A UDP socket that is connected has sent nothing.
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

/// The files of the Secret that `berth certs` makes by the documented command.
async fn certificates(plane: &ControlPlane, folder: &Path) {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/extender.md");
    let page = std::fs::read_to_string(page).unwrap();
    let documented = page.lines().find_map(|line| line.strip_prefix("$ berth certs ")).unwrap();
    let mut certs = Command::new(env!("CARGO_BIN_EXE_berth"));
    certs.arg("certs").args(documented.split(' ')).env("KUBECONFIG", plane.kubeconfig("admin"));
    let output = certs.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let secrets: Api<core::Secret> = Api::namespaced(plane.admin(), NAMESPACE);
    for (file, content) in secrets.get("berth-extender-tls").await.unwrap().data.unwrap() {
        std::fs::write(folder.join(file), content.0).unwrap();
    }
}

/// The documented configuration, for these files and this address; it verifies the documented name.
fn configuration(plane: &ControlPlane, folder: &Path, address: SocketAddr) -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/extender.md");
    let page = std::fs::read_to_string(page).unwrap();
    let text = page.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let mut documented: Value = serde_saphyr::from_str(text).unwrap();
    documented["clientConnection"] = json!({"kubeconfig": plane.kubeconfig("admin")});
    documented["leaderElection"] = json!({"leaderElect": false});
    let text = documented.to_string();
    assert!(text.contains(URL) && text.contains(FOLDER), "{text}");
    text.replace(URL, &format!("https://{address}")).replace(FOLDER, &folder.display().to_string())
}

/// The arguments of the printed binder after `serve`, without the settings file; its files are in this folder.
fn printed(folder: &Path) -> Vec<String> {
    let args = ManifestsArgs { extender: true, ..ManifestsArgs::default() };
    let objects = manifests::objects(&args, &InstallationSettings::default()).unwrap();
    let binder = objects
        .iter()
        .find(|object| object["kind"] == "Deployment" && object["metadata"]["name"] == "berth-binder");
    let args = &binder.unwrap()["spec"]["template"]["spec"]["containers"][0]["args"];
    let args: Vec<String> = serde_json::from_value(args.clone()).unwrap();
    assert_eq!(args[..3], ["serve", "--config", "/etc/berth/berth.yaml"]);
    args[3..].iter().map(|arg| arg.replace(FOLDER, &folder.display().to_string())).collect()
}

/// The status of the answer to a request without a certificate, or with the one of this folder.
async fn asked(address: SocketAddr, folder: &Path, certificate: bool) -> Option<u16> {
    let mut config = kube::Config::new(format!("https://{address}").parse().unwrap());
    config.accept_invalid_certs = true;
    if certificate {
        let file = |name: &str| Some(folder.join(name).display().to_string());
        (config.auth_info.client_certificate, config.auth_info.client_key) =
            (file("tls.crt"), file("tls.key"));
    }
    let request = http::Request::post("/extender/v1/filter").body(kube::client::Body::empty()).unwrap();
    Some(Client::try_from(config).unwrap().send(request).await.ok()?.status().as_u16())
}

#[tokio::test]
async fn a_kube_scheduler_with_the_printed_certificate_is_answered_and_no_other() {
    let accounts = ["berth-webhook", "berth-binder"].map(|name| Identity::service_account(NAMESPACE, name));
    let options = Options { identities: accounts.into(), ..Options::default() };
    let Some(mut plane) = ControlPlane::start(options).await else { return };
    let client = plane.admin();
    let reviews = free_address();
    apply_manifests(&client, reviews, ManifestsArgs { extender: true, ..ManifestsArgs::default() }).await;
    let fleet = cluster(&client).await;
    let folder = tempfile::tempdir().unwrap();
    certificates(&plane, folder.path()).await;
    let webhook = Replica::start_as(&plane, WEBHOOK, "webhook", reviews, &["--webhook-only"]);
    let host = own_address();
    let listen = SocketAddr::new(host.unwrap_or(reviews.ip()), free_address().port());
    let args = printed(folder.path());
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let binder = Replica::start_as(&plane, BINDER, "binder", listen, &args);
    until("the binder listens", async || asked(listen, folder.path(), true).await).await;
    plane.start_scheduler(&configuration(&plane, folder.path(), listen)).unwrap();
    runs(&client, "one").await;
    assert_eq!(asked(listen, folder.path(), true).await, Some(400), "an empty body can't be read");
    match host {
        Some(_) => {
            assert_eq!(asked(listen, folder.path(), false).await, Some(403), "it shows no certificate");
        }
        None => absent("an address beside loopback", "this machine has no network"),
    }
    assert!(webhook.stop().await.success());
    assert!(binder.stop().await.success());
    assert_eq!(fleet.violations(), []);
}
