//! Ways to use cards outside of the share: a node that is set without a scheduler, and access to cards that were not assigned.
//!
//! It judges only pods that ask for a share. The settings decide whether each guard denies, warns or allows.

use super::{facts::Facts, findings::ReviewFindings, rules};
use crate::{
    excerpt::{VALUE, excerpt},
    object::{Container, Pod},
};

/// Marks the mirror pod of a static pod, which the kubelet runs even if the API server refuses the mirror pod.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// The environment variable that NVIDIA's container runtime reads.
const VISIBLE_DEVICES: &str = "NVIDIA_VISIBLE_DEVICES";

/// Values that give access to no card.
const BLIND: [&str; 3] = ["", "none", "void"];

/// Judges a pod that asks for a share.
pub fn judge(findings: &mut ReviewFindings, pod: &Pod, facts: &Facts) {
    if pod.metadata.annotation(MIRROR).is_some() {
        return;
    }
    let guards = &facts.settings.guards;
    if pod.spec.node_name.as_deref().is_some_and(|name| !name.is_empty()) {
        let message = "is set, so that no scheduler would give the pod its share; leave it out, or choose the node by \
                       spec.nodeSelector[kubernetes.io/hostname]";
        findings.report(guards.preset_node, rules::PRESET_NODE, "spec.nodeName", message);
    }
    let lists = [
        ("initContainers", &pod.spec.init_containers),
        ("containers", &pod.spec.containers),
        ("ephemeralContainers", &pod.spec.ephemeral_containers),
    ];
    for (list, containers) in lists {
        for (at, container) in containers.iter().enumerate() {
            judge_container(findings, container, facts, |field| format!("spec.{list}[{at}].{field}"));
        }
    }
    mounts(findings, pod, facts);
}

fn judge_container(
    findings: &mut ReviewFindings,
    container: &Container,
    facts: &Facts,
    path: impl Fn(&str) -> String,
) {
    let guards = &facts.settings.guards;
    if container.security_context.privileged == Some(true) {
        let message =
            "a privileged container can use every card of its node; a pod with a share must not have one";
        findings.report(guards.privileged, rules::PRIVILEGED, path("securityContext.privileged"), message);
    }
    let by_hand = container.env.iter().flatten().find(|variable| {
        let blind = variable.value.as_deref().is_some_and(|value| BLIND.contains(&value));
        variable.name == VISIBLE_DEVICES && !blind
    });
    if by_hand.is_some() {
        let message = "this variable gives the container access to cards that are not its own; remove it: the device plugin \
                       sets it";
        findings.report(
            guards.visible_devices,
            rules::VISIBLE_DEVICES,
            path(&format!("env[{VISIBLE_DEVICES}]")),
            message,
        );
    }
}

fn mounts(findings: &mut ReviewFindings, pod: &Pod, facts: &Facts) {
    for (at, volume) in pod.spec.volumes.iter().enumerate() {
        let Some(host) = &volume.host_path else { continue };
        if shows_cards(&host.path) {
            let path = excerpt(&host.path, VALUE);
            let message =
                format!("`{path}` of the host gives access to cards outside of the share; do not mount it");
            let field = format!("spec.volumes[{at}].hostPath");
            findings.report(facts.settings.guards.device_mounts, rules::DEVICE_MOUNT, field, message);
        }
    }
}

/// `/dev` as a whole, or one of NVIDIA's files below it, however the path is written.
fn shows_cards(path: &str) -> bool {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    matches!(parts[..], ["dev"]) || (parts.len() > 1 && parts[0] == "dev" && parts[1].starts_with("nvidia"))
}
