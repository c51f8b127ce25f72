//! The families of constraints: what the pods of each demand, and what the pods that are there demand of others.

use serde_json::{Value, json};

use crate::objects::Kind;

/// A family of constraints.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Family {
    Nothing,
    NoCard,
    NothingAmongOthers,
    FitsNowhere,
    NodeAffinity,
    PreferredNodes,
    HostPort,
    AntiAffinity,
    Affinity,
    PreferredAntiAffinity,
    PreferredAffinity,
    OthersAboutIt,
    OthersNotAboutIt,
    OthersPreferIt,
    OthersPreferNone,
    SpreadZones,
    SpreadNodes,
    PreferredSpreadZones,
    PreferredSpreadNodes,
    BoundClaim,
    DelayedClaim,
    MadeClaim,
    LimitedClaim,
    OnePodClaim,
    Preempts,
    Gang,
    GangTooLarge,
    LeastWaste,
    LeastWasteUnequal,
    LeastWasteFilled,
    LeastWasteReweighed,
    JointDevices,
    TemplateClaim(Kind),
}

/// How many pods a gang has.
pub(crate) const GANG: u64 = 8;

/// What most pods of a cluster's nodes are called, in the label `app`.
pub(crate) const STANDING: &str = "standing";
/// The node label whose equal values make a zone.
pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
/// The node label that each node has for itself.
pub(crate) const HOSTNAME: &str = "kubernetes.io/hostname";

/// A term of affinity between pods that must hold, or one that only scores.
#[derive(Clone, Copy)]
enum Strength {
    Required,
    Preferred,
}

impl Family {
    pub(crate) const ALL: &[Self] = &[
        Self::Nothing,
        Self::NoCard,
        Self::NothingAmongOthers,
        Self::FitsNowhere,
        Self::NodeAffinity,
        Self::PreferredNodes,
        Self::HostPort,
        Self::AntiAffinity,
        Self::Affinity,
        Self::PreferredAntiAffinity,
        Self::PreferredAffinity,
        Self::OthersAboutIt,
        Self::OthersNotAboutIt,
        Self::OthersPreferIt,
        Self::OthersPreferNone,
        Self::SpreadZones,
        Self::SpreadNodes,
        Self::PreferredSpreadZones,
        Self::PreferredSpreadNodes,
        Self::BoundClaim,
        Self::DelayedClaim,
        Self::MadeClaim,
        Self::LimitedClaim,
        Self::OnePodClaim,
        Self::Preempts,
        Self::Gang,
        Self::GangTooLarge,
        Self::LeastWaste,
        Self::LeastWasteUnequal,
        Self::LeastWasteFilled,
        Self::LeastWasteReweighed,
        Self::JointDevices,
        Self::TemplateClaim(Kind::Any),
        Self::TemplateClaim(Kind::Selected),
        Self::TemplateClaim(Kind::Share),
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "no constraint",
            Self::NoCard => "no constraint and no card",
            Self::NothingAmongOthers => "no constraint, others have spread and claims",
            Self::FitsNowhere => "no constraint, and fits nowhere",
            Self::NodeAffinity => "node affinity and a toleration",
            Self::PreferredNodes => "preferred node affinity",
            Self::HostPort => "a host port",
            Self::AntiAffinity => "anti-affinity to its own label",
            Self::Affinity => "affinity within the zone",
            Self::PreferredAntiAffinity => "preferred anti-affinity to its own label",
            Self::PreferredAffinity => "preferred affinity within the zone",
            Self::OthersAboutIt => "others' anti-affinity that is about it",
            Self::OthersNotAboutIt => "others' anti-affinity that is not",
            Self::OthersPreferIt => "others' preferred affinity to it",
            Self::OthersPreferNone => "others' preferred affinity to other pods",
            Self::SpreadZones => "spread over 16 zones",
            Self::SpreadNodes => "spread over nodes",
            Self::PreferredSpreadZones => "preferred spread over 16 zones",
            Self::PreferredSpreadNodes => "preferred spread over nodes",
            Self::BoundClaim => "a bound claim, its volume for one zone",
            Self::DelayedClaim => "a claim that waits, a volume on each fifth node",
            Self::MadeClaim => "a claim that waits, capacities of each node",
            Self::LimitedClaim => "a bound claim, limits and attached volumes",
            Self::OnePodClaim => "a bound claim for one pod only",
            Self::Preempts => "higher priority, and preempts",
            Self::Gang => "a gang of 8, all of it",
            Self::GangTooLarge => "a gang of 8, the last of which fits nowhere",
            Self::LeastWaste => "least-waste, rooms of 400 sizes",
            Self::LeastWasteUnequal => "least-waste, no two nodes of one size",
            Self::LeastWasteFilled => "least-waste, no two rooms or cards alike",
            Self::LeastWasteReweighed => "least-waste, another mix of pods each time",
            Self::JointDevices => "a GPU and a NIC of one PCIe switch",
            Self::TemplateClaim(kind) => kind.name(),
        }
    }

    /// Whether pods go where they leave least of no use.
    pub(crate) fn wastes_least(self) -> bool {
        matches!(
            self,
            Self::LeastWaste | Self::LeastWasteUnequal | Self::LeastWasteFilled | Self::LeastWasteReweighed
        )
    }

    /// Whether some node would have the pods.
    pub(crate) fn fits(self) -> bool {
        !matches!(self, Self::FitsNowhere | Self::Preempts | Self::GangTooLarge)
    }

    /// How much memory of a card the pods of a class have that is told apart by this amount, in MiB.
    pub(crate) fn memory(self, class: u64) -> u64 {
        match self {
            Self::FitsNowhere => 1_000_000 + class,
            // A whole card but for this amount, of which a pod that is there holds more.
            Self::Preempts => 81_920 - class,
            _ => class,
        }
    }

    /// The same of one pod of a gang, by its place among the others.
    pub(crate) fn memory_of_member(self, member: u64, class: u64) -> u64 {
        let too_large = self == Self::GangTooLarge && member == GANG - 1;
        if too_large { 1_000_000 + class } else { self.memory(class) }
    }

    /// How many cards the pods ask for.
    pub(crate) fn cards(self) -> u32 {
        if self == Self::Preempts { 8 } else { 1 }
    }

    /// Whether eight pods are decided together.
    pub(crate) fn is_gang(self) -> bool {
        matches!(self, Self::Gang | Self::GangTooLarge)
    }

    /// What the pod of this number has beside its share of a card.
    pub(crate) fn spec(self, number: usize) -> Value {
        let claim = |name: String| json!({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]});
        match self {
            Self::Nothing
            | Self::NoCard
            | Self::NothingAmongOthers
            | Self::FitsNowhere
            | Self::OthersAboutIt
            | Self::OthersNotAboutIt
            | Self::OthersPreferIt
            | Self::OthersPreferNone
            | Self::Preempts
            | Self::Gang
            | Self::GangTooLarge
            | Self::LeastWaste
            | Self::LeastWasteUnequal
            | Self::LeastWasteFilled
            | Self::LeastWasteReweighed
            | Self::JointDevices
            | Self::TemplateClaim(_) => json!({}),
            Self::NodeAffinity => json!({
                "tolerations": [{"key": "gpu", "operator": "Exists"}],
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [in_zones(&["zone-1", "zone-2"])]}}}}),
            Self::PreferredNodes => json!({
                "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 10, "preference": in_zones(&["zone-1", "zone-2"])}]}}}),
            Self::HostPort => {
                json!({"containers": [{"name": "main", "ports": [{"hostPort": 8080, "containerPort": 80}]}]})
            }
            Self::AntiAffinity => near("podAntiAffinity", Strength::Required, HOSTNAME, "work"),
            Self::Affinity => near("podAffinity", Strength::Required, ZONE, STANDING),
            Self::PreferredAntiAffinity => near("podAntiAffinity", Strength::Preferred, HOSTNAME, "work"),
            Self::PreferredAffinity => near("podAffinity", Strength::Preferred, ZONE, STANDING),
            Self::SpreadZones => spread(ZONE, "DoNotSchedule"),
            Self::SpreadNodes => spread(HOSTNAME, "DoNotSchedule"),
            Self::PreferredSpreadZones => spread(ZONE, "ScheduleAnyway"),
            Self::PreferredSpreadNodes => spread(HOSTNAME, "ScheduleAnyway"),
            Self::BoundClaim => claim("shared".to_owned()),
            Self::DelayedClaim | Self::MadeClaim | Self::LimitedClaim | Self::OnePodClaim => {
                claim(format!("claim-{number}"))
            }
        }
    }

    /// What a pod on the node of this number has beside its share of a card.
    pub(crate) fn neighbour(self, node: usize) -> Value {
        if !node.is_multiple_of(10) {
            return json!({});
        }
        match self {
            Self::NothingAmongOthers => {
                let mut spec = spread(ZONE, "DoNotSchedule");
                spec["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "shared"}}]);
                spec
            }
            Self::OthersAboutIt => near("podAntiAffinity", Strength::Required, ZONE, "work"),
            Self::OthersNotAboutIt => near("podAntiAffinity", Strength::Required, ZONE, "another"),
            Self::OthersPreferIt => near("podAffinity", Strength::Preferred, ZONE, "work"),
            Self::OthersPreferNone => near("podAffinity", Strength::Preferred, ZONE, "another"),
            _ => json!({}),
        }
    }

    /// Whether every fourth node has a taint.
    pub(crate) fn taints(self) -> bool {
        self == Self::NodeAffinity
    }
}

/// A term about nodes of these zones.
fn in_zones(zones: &[&str]) -> Value {
    json!({"matchExpressions": [{"key": ZONE, "operator": "In", "values": zones}]})
}

fn spread(key: &str, when_unsatisfiable: &str) -> Value {
    json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": key,
        "whenUnsatisfiable": when_unsatisfiable, "labelSelector": {"matchLabels": {"app": "work"}}}]})
}

/// One term of affinity or anti-affinity to the pods with this value of the label `app`.
fn near(kind: &str, strength: Strength, key: &str, app: &str) -> Value {
    let term = json!({"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}});
    match strength {
        Strength::Required => {
            json!({"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})
        }
        Strength::Preferred => {
            let weighted = json!({"weight": 10, "podAffinityTerm": term});
            json!({"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}})
        }
    }
}
