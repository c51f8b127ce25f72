//! Which annotations of nodes are written by device plugins and schedulers of shares alone: lists of cards, signs of life, locks.
//!
//! The policy `berth-nodes.berth.dev` protects the same keys (`webhook-config/60-policies.yaml`); a test holds both together.

use super::{hami, volcano};

/// What the keys of HAMi's plugins, of every vendor, begin with.
pub const PREFIXES: [&str; 2] = ["hami.io/node-", hami::names::LOCK];

/// Further keys: locks and registers of Volcano's plugins and of Cambricon's.
pub const KEYS: [&str; 8] = [
    volcano::names::LOCK,
    volcano::names::GPU_LOCK,
    "hami-vnpu-core",
    "cambricon.com/dsmlu.lock",
    "volcano.sh/mutex.lock",
    volcano::names::REGISTER,
    "volcano.sh/node-vgpu-handshake",
    volcano::names::GPU_UNHEALTHY,
];

/// Whether a node's annotation of this key belongs to device plugins and schedulers.
pub fn is_on_nodes(key: &str) -> bool {
    PREFIXES.iter().any(|prefix| key.starts_with(prefix)) || KEYS.contains(&key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICIES: &str = include_str!("../../deploy/helm/berth/manifests/60-policies.yaml");

    #[test]
    fn the_policy_on_nodes_protects_these_keys() {
        let (_, nodes) = POLICIES.split_once("name: berth-nodes.berth.dev").expect("the policy");
        let (_, protected) = nodes.split_once("- name: protected").expect("its variable");
        let (protected, _) = protected.split_once("validations:").expect("its end");
        for prefix in PREFIXES {
            assert!(protected.contains(&format!("key.startsWith('{prefix}')")), "{prefix}: {protected}");
        }
        for key in KEYS {
            assert!(protected.contains(&format!("'{key}'")), "{key}: {protected}");
        }
        let quoted = protected.split('\'').skip(1).step_by(2);
        let unknown: Vec<_> =
            quoted.filter(|key| !key.starts_with("assigned.berth.dev/") && !is_on_nodes(key)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn what_users_write_on_nodes_is_not_theirs() {
        assert!(is_on_nodes("hami.io/node-nvidia-register") && is_on_nodes("hami.io/mutex.lock.hygon"));
        assert!(!is_on_nodes("hami.io/device-cordon") && !is_on_nodes("gpu-model"));
    }
}
