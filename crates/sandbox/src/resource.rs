//! Which kinds of object the API server serves, and how each one is spelled; it holds no object.

/// Whether the objects of a resource live in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Named once in the cluster.
    Cluster,
    /// Named once in each namespace.
    Namespaced,
}

/// Whether `metadata.generation` counts the changes of `spec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// The kind carries no generation.
    Absent,
    /// Starts at 1 and moves with `spec`.
    Counted,
}

/// One row of the table: a resource in one group and version.
#[derive(Debug)]
pub struct Resource {
    /// API group, empty for core.
    pub group: &'static str,
    /// Version inside the group.
    pub version: &'static str,
    /// The name in paths, such as `pods`.
    pub plural: &'static str,
    /// The name in bodies, such as `Pod`.
    pub kind: &'static str,
    /// Cluster or namespace.
    pub scope: Scope,
    /// Whether a generation is kept.
    pub generation: Generation,
    /// What kubectl accepts besides the plural.
    pub short_names: &'static [&'static str],
    /// Paths below an object.
    pub subresources: &'static [&'static str],
}

impl Resource {
    const fn namespaced(
        group: &'static str,
        version: &'static str,
        plural: &'static str,
        kind: &'static str,
    ) -> Self {
        let (short_names, subresources): (&[&str], &[&str]) = (&[], &[]);
        let (scope, generation) = (Scope::Namespaced, Generation::Absent);
        Self { group, version, plural, kind, scope, generation, short_names, subresources }
    }

    const fn cluster(
        group: &'static str,
        version: &'static str,
        plural: &'static str,
        kind: &'static str,
    ) -> Self {
        let row = Self::namespaced(group, version, plural, kind);
        Self { scope: Scope::Cluster, ..row }
    }

    const fn short(self, short_names: &'static [&'static str]) -> Self {
        Self { short_names, ..self }
    }

    const fn below(self, subresources: &'static [&'static str]) -> Self {
        Self { subresources, ..self }
    }

    const fn counted(self) -> Self {
        Self { generation: Generation::Counted, ..self }
    }

    /// `v1` or `group/version`.
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// `pods` or `leases.coordination.k8s.io`: how messages name the resource.
    pub fn qualified(&self) -> String {
        qualify(self.plural, self.group)
    }

    /// `Pod` or `Deployment.apps`: how validation messages name the kind.
    pub fn qualified_kind(&self) -> String {
        qualify(self.kind, self.group)
    }

    /// The resource whose store holds these objects: both event groups read one.
    pub fn stored(&'static self) -> &'static Resource {
        match self.plural {
            "events" => find("", "events").expect("the table has core events"),
            _ => self,
        }
    }

    /// Whether objects have a status that the subresource `status` alone may write.
    pub fn has_status(&self) -> bool {
        self.subresources.contains(&"status")
    }
}

fn qualify(name: &str, group: &str) -> String {
    match group {
        "" => name.to_owned(),
        _ => format!("{name}.{group}"),
    }
}

const ADMISSION: &str = "admissionregistration.k8s.io";
const STORAGE: &str = "storage.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";

/// Every served resource, in the order of discovery.
pub static RESOURCES: &[Resource] = &[
    Resource::namespaced("", "v1", "bindings", "Binding"),
    Resource::namespaced("", "v1", "configmaps", "ConfigMap").short(&["cm"]),
    Resource::namespaced("", "v1", "events", "Event").short(&["ev"]),
    Resource::cluster("", "v1", "namespaces", "Namespace").short(&["ns"]).below(&["finalize", "status"]),
    Resource::cluster("", "v1", "nodes", "Node").short(&["no"]).below(&["status"]),
    Resource::namespaced("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
        .short(&["pvc"])
        .below(&["status"]),
    Resource::cluster("", "v1", "persistentvolumes", "PersistentVolume").short(&["pv"]).below(&["status"]),
    Resource::namespaced("", "v1", "pods", "Pod")
        .short(&["po"])
        .below(&["binding", "ephemeralcontainers", "eviction", "resize", "status"])
        .counted(),
    Resource::namespaced("", "v1", "replicationcontrollers", "ReplicationController")
        .short(&["rc"])
        .below(&["status"])
        .counted(),
    Resource::namespaced("", "v1", "resourcequotas", "ResourceQuota").short(&["quota"]).below(&["status"]),
    Resource::namespaced("", "v1", "secrets", "Secret"),
    Resource::namespaced("", "v1", "serviceaccounts", "ServiceAccount").short(&["sa"]),
    Resource::namespaced("", "v1", "services", "Service").short(&["svc"]).below(&["status"]),
    Resource::cluster(ADMISSION, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration")
        .counted(),
    Resource::cluster(ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy")
        .below(&["status"])
        .counted(),
    Resource::cluster(
        ADMISSION,
        "v1",
        "validatingadmissionpolicybindings",
        "ValidatingAdmissionPolicyBinding",
    )
    .counted(),
    Resource::cluster(ADMISSION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration")
        .counted(),
    Resource::namespaced("apps", "v1", "daemonsets", "DaemonSet").short(&["ds"]).below(&["status"]).counted(),
    Resource::namespaced("apps", "v1", "deployments", "Deployment")
        .short(&["deploy"])
        .below(&["status"])
        .counted(),
    Resource::namespaced("apps", "v1", "replicasets", "ReplicaSet")
        .short(&["rs"])
        .below(&["status"])
        .counted(),
    Resource::namespaced("apps", "v1", "statefulsets", "StatefulSet")
        .short(&["sts"])
        .below(&["status"])
        .counted(),
    Resource::cluster("authentication.k8s.io", "v1", "tokenreviews", "TokenReview"),
    Resource::cluster("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview"),
    Resource::namespaced("batch", "v1", "cronjobs", "CronJob").short(&["cj"]).below(&["status"]).counted(),
    Resource::namespaced("batch", "v1", "jobs", "Job").below(&["status"]).counted(),
    Resource::namespaced("coordination.k8s.io", "v1", "leases", "Lease"),
    Resource::namespaced("events.k8s.io", "v1", "events", "Event").short(&["ev"]),
    Resource::cluster("flowcontrol.apiserver.k8s.io", "v1", "flowschemas", "FlowSchema")
        .below(&["status"])
        .counted(),
    Resource::namespaced("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
        .short(&["pdb"])
        .below(&["status"])
        .counted(),
    Resource::cluster(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding"),
    Resource::cluster(RBAC, "v1", "clusterroles", "ClusterRole"),
    Resource::namespaced(RBAC, "v1", "rolebindings", "RoleBinding"),
    Resource::namespaced(RBAC, "v1", "roles", "Role"),
    Resource::cluster("resource.k8s.io", "v1", "deviceclasses", "DeviceClass").counted(),
    Resource::cluster("resource.k8s.io", "v1", "devicetaintrules", "DeviceTaintRule")
        .below(&["status"])
        .counted(),
    Resource::namespaced("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim").below(&["status"]),
    Resource::namespaced("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate")
        .counted(),
    Resource::cluster("resource.k8s.io", "v1", "resourceslices", "ResourceSlice").counted(),
    Resource::cluster("scheduling.koordinator.sh", "v1alpha1", "devices", "Device").counted(),
    Resource::cluster("scheduling.koordinator.sh", "v1alpha1", "reservations", "Reservation").counted(),
    Resource::namespaced("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
        .short(&["pg"])
        .below(&["status"])
        .counted(),
    Resource::namespaced("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
        .below(&["status"])
        .counted(),
    Resource::cluster("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass").short(&["pc"]).counted(),
    Resource::namespaced("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup")
        .below(&["status"])
        .counted(),
    Resource::namespaced("scheduling.k8s.io", "v1alpha3", "compositepodgroups", "CompositePodGroup")
        .below(&["status"])
        .counted(),
    Resource::cluster(STORAGE, "v1", "csidrivers", "CSIDriver"),
    Resource::cluster(STORAGE, "v1", "csinodes", "CSINode"),
    Resource::namespaced(STORAGE, "v1", "csistoragecapacities", "CSIStorageCapacity"),
    Resource::cluster(STORAGE, "v1", "storageclasses", "StorageClass").short(&["sc"]),
    Resource::cluster(STORAGE, "v1", "volumeattachments", "VolumeAttachment").below(&["status"]),
];

/// The resource of that group and plural.
pub fn find(group: &str, plural: &str) -> Option<&'static Resource> {
    RESOURCES.iter().find(|row| row.group == group && row.plural == plural)
}

/// The resource of that plural, wherever the plural is unique or core.
pub(super) fn known(group: &str, plural: &str) -> &'static Resource {
    find(group, plural).expect("the caller names a row of the table")
}
