//! One container of a pod, as far as rules read it.

use std::collections::BTreeMap;

use compact_str::CompactString;
use serde::Deserialize;

use super::{nullable, quantity::Quantity};

/// Resource name to quantity, as written.
pub type ResourceMap = BTreeMap<String, Quantity>;

/// `resources` of a container or of a pod.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct Resources {
    /// `limits`; `None` where the key is absent.
    pub limits: Option<ResourceMap>,
    /// `requests`; `None` where the key is absent.
    pub requests: Option<ResourceMap>,
    /// The claims of the pod that the container uses.
    #[serde(deserialize_with = "nullable")]
    pub claims: Vec<ContainerClaim>,
}

/// A claim that a container uses.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct ContainerClaim {
    /// The entry of the pod's `spec.resourceClaims`.
    #[serde(deserialize_with = "nullable")]
    pub name: CompactString,
    /// The one request of the claim whose devices it uses; absent: all.
    pub request: Option<CompactString>,
}

impl Resources {
    /// The limit of a resource, or its request where there is no limit.
    pub fn limit_or_request(&self, name: &str) -> Option<&Quantity> {
        self.limit(name).or_else(|| self.request(name))
    }

    /// The limit of a resource.
    pub fn limit(&self, name: &str) -> Option<&Quantity> {
        self.limits.as_ref()?.get(name)
    }

    /// The request of a resource.
    pub fn request(&self, name: &str) -> Option<&Quantity> {
        self.requests.as_ref()?.get(name)
    }

    /// Every resource name in limits or requests, in name order, once.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let both = self.limits.iter().chain(self.requests.iter()).flat_map(BTreeMap::keys);
        both.map(String::as_str).collect::<std::collections::BTreeSet<_>>().into_iter()
    }
}

/// A port of a container; only host ports matter to placement.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Port {
    /// The port on the host; 0 or absent: none.
    #[serde(deserialize_with = "nullable")]
    pub host_port: u16,
    /// The port in the pod's own network.
    #[serde(deserialize_with = "nullable")]
    pub container_port: u16,
    /// The address on the host; empty: all.
    #[serde(rename = "hostIP", deserialize_with = "nullable")]
    pub host_ip: String,
    /// The protocol.
    #[serde(deserialize_with = "nullable")]
    pub protocol: Protocol,
}

/// The protocol of a port.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
pub enum Protocol {
    /// TCP, also where none is given.
    #[default]
    #[serde(rename = "TCP", alias = "")]
    Tcp,
    /// UDP.
    #[serde(rename = "UDP")]
    Udp,
    /// SCTP.
    #[serde(rename = "SCTP")]
    Sctp,
    /// One that the API server would not store.
    #[serde(other)]
    Unknown,
}

/// What becomes of a container that ends in a certain way.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct RestartRule {
    /// `Restart`, `RestartAllContainers` and the like.
    #[serde(deserialize_with = "nullable")]
    pub action: String,
}

/// An environment variable; its value is absent where it comes from elsewhere.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct EnvVar {
    /// The variable's name.
    pub name: CompactString,
    /// The literal value.
    pub value: Option<CompactString>,
}

/// The security settings of a container that rules read.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct SecurityContext {
    /// Whether the container runs privileged.
    pub privileged: Option<bool>,
}

/// One container, init container or sidecar.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    /// The container's name.
    #[serde(deserialize_with = "nullable")]
    pub name: CompactString,
    /// The image that it runs.
    #[serde(deserialize_with = "nullable")]
    pub image: CompactString,
    /// Limits and requests.
    #[serde(deserialize_with = "nullable")]
    pub resources: Resources,
    /// `Always` on an init container makes it a sidecar.
    pub restart_policy: Option<CompactString>,
    /// What becomes of it when it ends.
    #[serde(deserialize_with = "nullable")]
    pub restart_policy_rules: Vec<RestartRule>,
    /// Ports.
    #[serde(deserialize_with = "nullable")]
    pub ports: Vec<Port>,
    /// Environment; `None` where the key is absent.
    pub env: Option<Vec<EnvVar>>,
    /// Security settings.
    #[serde(deserialize_with = "nullable")]
    pub security_context: SecurityContext,
}

impl Container {
    /// Whether an init container keeps running beside the app containers.
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }
}
