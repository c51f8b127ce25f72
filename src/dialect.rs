//! What other projects write on nodes and pods: names, codecs, request reading, lock values; and a `Profile` for each.
//!
//! The only place where wire names stand. No allocation, no client, no clock: the time comes in as a parameter.

pub mod amounts;
pub mod answer;
pub mod bounds;
pub mod claim;
pub mod count;
pub mod eviction;
pub mod gpushare;
pub mod hami;
pub mod hints;
pub mod koordinator;
pub mod lock;
pub mod marks;
pub mod protected;
pub mod readers;
pub mod registered;
pub mod schedulers;
pub mod segments;
mod share;
pub mod unreadable;
pub mod vendor;
pub mod volcano;

use std::{collections::BTreeMap, fmt, sync::Arc};

use jiff::Timestamp;

pub use count::MissingCount;
pub use hints::HintKeys;
pub use lock::{LockForm, LockSpec};
use readers::Readers;
pub use registered::{PluginRegistration, Registered};
pub use unreadable::{Problem, Unreadable};

use crate::{
    device::{
        Answer, Assignment, CountedAmount, DeviceAllocations, DevicePlace, Inventory, JointRequest, LockName,
        LockNeed, PodRequest, Profile, ProfileName, Remains,
    },
    object::{Node, Pod, Quantity},
};

/// How a pod asks for its share. A pod speaks one mode only.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum SharingMode {
    /// `nvidia.com/gpu*`: HAMi's device plugin.
    Hami,
    /// `volcano.sh/vgpu-*`: Volcano's vGPU device plugin.
    Vgpu,
    /// `volcano.sh/gpu-memory`: Volcano's gpushare.
    GpuShare,
    /// `volcano.sh/gpu-number`: Volcano's whole cards.
    GpuNumber,
    /// The resources of another vendor's cards, as HAMi shares them: its name.
    Vendor(ProfileName),
}

impl fmt::Display for SharingMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Hami => "hami",
            Self::Vgpu => "vgpu",
            Self::GpuShare => "gpushare",
            Self::GpuNumber => "gpunumber",
            Self::Vendor(name) => name.as_str(),
        })
    }
}

/// An assignment that a pod carries, and the node that it was made for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Carried {
    /// The shares.
    pub assignment: Assignment,
    /// The node that the annotations name; it holds also before the pod is bound.
    pub node: Option<String>,
    /// What of it can't be read; cards that are named are held all the same, and one that isn't is a [`Problem::Card`].
    pub unread: Vec<Unreadable>,
}

/// What a pod asks, and in which dialect.
pub type Asked<'a> = (&'a Arc<dyn Dialect>, PodRequest);

/// What an upstream webhook sets in pods that ask for shares of its vendor.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Additions<'a> {
    /// The runtime class of pods that name none.
    pub runtime_class: Option<&'a str>,
    /// The environment variable that holds a container's name, and the resource by which such a container asks.
    pub name_variable: Option<(&'a str, &'a str)>,
}

/// What a Binding carries beside the node's name.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Record {
    /// Annotations that the API server merges into the pod.
    pub annotations: BTreeMap<String, String>,
    /// Labels, likewise.
    pub labels: BTreeMap<String, String>,
}

impl Record {
    /// That the pod is bound in this revocable zone.
    pub fn lent(zone: Option<&str>) -> Self {
        let lent = zone.map(|zone| (marks::LENT.to_owned(), zone.to_owned()));
        Self { annotations: lent.into_iter().collect(), labels: BTreeMap::new() }
    }

    /// Both together.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.annotations.extend(other.annotations);
        self.labels.extend(other.labels);
        self
    }
}

/// What a dialect calls a card by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CardNaming {
    /// Its uuid.
    Uuid,
    /// Its number on the node.
    Number,
}

/// One protocol between a scheduler and a node's device plugin.
pub trait Dialect: fmt::Debug + Send + Sync {
    /// Its name.
    fn name(&self) -> &ProfileName {
        &self.profile().name
    }

    /// How its cards are shared.
    fn profile(&self) -> &Profile;

    /// The mode that it serves.
    fn mode(&self) -> &SharingMode;

    /// The extended resources that it reads; a node need not advertise each.
    fn resources(&self) -> Vec<&str>;

    /// Those that ask for a share of a card: memory and compute.
    fn share_resources(&self) -> Vec<&str>;

    /// Of its resources, whole cards that another dialect may read too. This one reads them in pods that ask for no share by the other's names.
    fn whole_cards(&self) -> Vec<&str> {
        Vec::new()
    }

    /// The resources by which kubelet asks vendors' device plugins for what a pod asks for in this dialect: they ask for nothing themselves in a
    /// pod that names another of its resources, and are not its own in any other.
    fn plugin_resources(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Whether this resource only describes a share that another one requests.
    fn qualifies(&self, _resource: &str) -> bool {
        false
    }

    /// The resources by which a namespace's quota bounds its shares; none: no quota does.
    fn counted(&self) -> Vec<CountedAmount<'_>> {
        Vec::new()
    }

    /// The annotations by which users choose cards, as lists of models and uuids; `None`: it has no such lists.
    fn hint_keys(&self) -> Option<&HintKeys>;

    /// The count that admission adds to a container which requests a share but states no count: kubelet asks no agent without one.
    fn default_count(&self) -> Option<(&str, u32)>;

    /// What is set in pods that ask for its shares.
    fn additions(&self) -> Additions<'_> {
        Additions::default()
    }

    /// The cards that the node's plugin has registered; `None`: this plugin does not run there.
    fn inventory(&self, node: &Node) -> Result<Option<Inventory>, Unreadable>;

    /// Until when the node's cards may be used without a new sign of its plugin; `None`: for good.
    fn expiry(&self, _node: &Node) -> Option<Timestamp> {
        None
    }

    /// The shares that the pod requests; `None`: none of this dialect, since it names none of its resources, or each with 0.
    fn request(&self, pod: &Pod, missing: MissingCount) -> Result<Option<PodRequest>, Vec<Unreadable>>;

    /// The devices by type that the pod asks for as a whole; `None`: the dialect knows cards alone.
    fn joint_request(&self, _pod: &Pod) -> Result<Option<JointRequest>, Vec<Unreadable>> {
        Ok(None)
    }

    /// The assignment that the pod carries, whoever wrote it; an error where nothing of it can be read.
    fn assignment(&self, pod: &Pod) -> Result<Option<Carried>, Unreadable>;

    /// How the assignment is written for the node's agent.
    fn record(&self, assignment: &Assignment, node: &str, now: Timestamp) -> Record;

    /// What the device plugins of the node's vendor read beside that; an error says what they can't serve.
    fn adaption(
        &self,
        _given: &DeviceAllocations,
        _node: (&str, &DevicePlace),
        _now: Timestamp,
    ) -> Result<Record, String> {
        Ok(Record::default())
    }

    /// What the agent has made of the pod.
    fn answer(&self, pod: &Pod) -> Answer;

    /// What the pod's assignment is to the node's agent once the pod is dead.
    fn remains(&self, _pod: &Pod) -> Remains {
        Remains::Harmless
    }

    /// The annotations that withdraw the assignment of a dead pod; none where its remains are always harmless.
    fn withdrawal(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// What its cards are called by.
    fn naming(&self) -> CardNaming {
        CardNaming::Uuid
    }

    /// The locks that agents of nodes may need; none: they do without.
    fn locks(&self) -> &[LockSpec];

    /// Whose lock an agent needs is known by the devices of its node alone ([`crate::device::NodeDevices::plugin`]); otherwise every node's needs each.
    fn locks_by_devices(&self) -> bool {
        false
    }
}

/// The dialects that are spoken, in the order in which a pod is read.
#[derive(Clone, Debug, Default)]
pub struct Dialects {
    spoken: Vec<Arc<dyn Dialect>>,
    /// By resource, which of them read it: a pod is asked of those only whose resources it names.
    readers: Readers,
}

impl Dialects {
    /// These dialects.
    pub fn new(dialects: Vec<Arc<dyn Dialect>>) -> Self {
        Self { readers: Readers::of(&dialects), spoken: dialects }
    }

    /// These without the one of that name.
    #[must_use]
    pub fn without(self, name: &str) -> Self {
        Self::new(self.spoken.into_iter().filter(|dialect| dialect.name().as_str() != name).collect())
    }

    /// These, and before them another one: of a resource that several read, the first does.
    #[must_use]
    pub fn after(self, first: Arc<dyn Dialect>) -> Self {
        Self::new(std::iter::once(first).chain(self.spoken).collect())
    }

    /// These, and behind them another one.
    #[must_use]
    pub fn before(self, last: Arc<dyn Dialect>) -> Self {
        Self::new(self.spoken.into_iter().chain([last]).collect())
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Dialect>> {
        self.spoken.iter()
    }

    /// The dialect of that name.
    pub fn named(&self, name: &ProfileName) -> Option<&Arc<dyn Dialect>> {
        self.iter().find(|dialect| dialect.name() == name)
    }

    /// Whether a lock of one of them is left out where no scheduler contests it.
    pub fn leave_out_locks(&self) -> bool {
        let mut locks = self.iter().flat_map(|dialect| dialect.locks());
        locks.any(|lock| lock.need == LockNeed::WhereContested)
    }

    /// How this lock is written; `None`: no dialect has it.
    pub fn lock(&self, name: &LockName) -> Option<&LockSpec> {
        self.named(&name.profile)?.locks().iter().find(|spec| *spec.key == *name.key)
    }

    /// The mode that a resource of this name speaks, whether or not it is enabled here; of one that the pod decides on ([`Dialects::in_pod`]),
    /// that of a share.
    pub fn mode_of(&self, resource: &str) -> Option<&SharingMode> {
        let enabled = self.readers.first(resource).map(|at| self.spoken[at].mode());
        enabled.or_else(|| well_known_mode(resource))
    }

    /// Whether the pod requests a share in this mode.
    pub fn are_asked(&self, pod: &Pod, mode: &SharingMode) -> bool {
        let readers = self.in_pod(pod);
        extended_resources(pod).any(|(name, amount)| readers.mode_requested(name, amount) == Some(mode))
    }

    /// The dialects of which the pod names a resource, in order.
    pub fn asked(&self, pod: &Pod) -> Vec<&Arc<dyn Dialect>> {
        let readers = self.in_pod(pod);
        let resources = extended_resources(pod);
        let mut places: Vec<_> = resources.filter_map(|(name, _)| readers.place(name)).collect();
        places.sort_unstable();
        places.dedup();
        places.into_iter().map(|at| &self.spoken[at]).collect()
    }

    /// What a stored pod asks, and in which dialect. One that mixes modes is refused, also where admission has not seen it: it would need the
    /// locks and the answers of several plugins at once.
    pub fn request(&self, pod: &Pod) -> Result<Option<Asked<'_>>, Vec<Unreadable>> {
        for dialect in self.asked(pod) {
            if let Some(request) = dialect.request(pod, MissingCount::Refuse)? {
                return match self.beside(pod, dialect.mode()) {
                    Some(trouble) => Err(vec![trouble]),
                    None => Ok(Some((dialect, request))),
                };
            }
        }
        Ok(None)
    }

    /// A resource of the pod that asks in another mode than this.
    fn beside(&self, pod: &Pod, mode: &SharingMode) -> Option<Unreadable> {
        let readers = self.in_pod(pod);
        let other = |name, amount| readers.mode_requested(name, amount).filter(|other| *other != mode);
        pod.containers().find_map(|(path, container)| {
            let resources = &container.resources;
            let sections = [("limits", &resources.limits), ("requests", &resources.requests)];
            sections.into_iter().find_map(|(section, amounts)| {
                let mut amounts = amounts.iter().flatten();
                let (name, other) = amounts.find_map(|(name, amount)| Some((name, other(name, amount)?)))?;
                let field = format!("{path}.resources.{section}[{name}]");
                let message = format!("asks in mode {other} beside mode {mode}; a pod may use one mode only");
                Some(Unreadable::new(Problem::Unserved, field, message))
            })
        })
    }
}

/// The pod's resources that are not kubelet's own and their amounts, each as often as it is there.
fn extended_resources(pod: &Pod) -> impl Iterator<Item = (&String, &Quantity)> {
    let containers = pod.spec.init_containers.iter().chain(&pod.spec.containers);
    let amounts =
        containers.flat_map(|container| [&container.resources.limits, &container.resources.requests]);
    // Names are short: a search of their bytes costs less than the standard library's for a character.
    amounts.flatten().flatten().filter(|(name, _)| name.bytes().any(|byte| byte == b'/'))
}

/// The modes by upstream's default names.
fn well_known_mode(resource: &str) -> Option<&'static SharingMode> {
    match resource {
        volcano::names::GPU_MEMORY => Some(&SharingMode::GpuShare),
        volcano::names::GPU_NUMBER => Some(&SharingMode::GpuNumber),
        _ if resource.starts_with(volcano::names::VGPU_PREFIX) => Some(&SharingMode::Vgpu),
        _ if hami::names::RESOURCES.contains(&resource) => Some(&SharingMode::Hami),
        _ => None,
    }
}

/// A boolean as Go's `strconv.ParseBool` reads it; HAMi and Volcano read their annotations so.
pub(crate) fn go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}
