//! The settings in the form of the layers below: dialects, rules, scheduler.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::{SignedDuration, tz::TimeZone};

use super::{
    ChipConfig, Config, FamilyConfig, GpuCorePolicy, HamiConfig, VendorsConfig, VnpusConfig, VolcanoConfig,
    WorkloadConfig,
    hami::{NodeLockPolicy, SchedulerPolicy},
    scheduling::PodsPolicy,
    volcano::LockValue,
};
use crate::{
    admission::{
        self, DefaultScheduler,
        settings::{Bystanders, HamiDefaults, ResourceClaimSupport, ResourceNames},
    },
    cluster::{
        Reader,
        report::scrape::{Series, ShownSeries},
    },
    device::{CardPolicy, Cores, LockNeed, MiB, NodePolicy},
    dialect::{
        Dialect, Dialects, LockForm, LockSpec, SharingMode, gpushare, hami,
        koordinator::{Koordinator, WholeCards},
        marks,
        vendor::{
            self, Vendor, VendorRow, amd, ascend, biren, cambricon, hygon, iluvatar,
            row::{FamilyResources, SliceTemplate, Splitting, Templates},
        },
        volcano::{self, ModelGeometries},
    },
    object::{Workloads, pod::DEFAULT_SCHEDULER},
    scheduling::{
        self,
        model::{plugin_arguments::PluginArguments, tdm::RevocableZones},
    },
};

/// The time after which Volcano's own scheduler considers a lock abandoned (`pkg/scheduler/plugins/util/nodelock/nodelock.go`).
const VOLCANO_LOCK_EXPIRY: SignedDuration = SignedDuration::from_mins(5);

impl Config {
    /// The keys that differ from `before` and also stand in what was installed: the webhook configurations, the policies and the roles.
    pub fn installed_otherwise(&self, before: &Self) -> Vec<&'static str> {
        let (scheduling, was) = (&self.scheduling, &before.scheduling);
        let (koordinator, koordinator_was) = (&self.dialects.koordinator, &before.dialects.koordinator);
        let evicts = self.evicts() != before.evicts();
        let keys = [
            ("schedulerName", self.scheduler_name != before.scheduler_name),
            ("scope", self.scope != before.scope),
            ("adoptSchedulers", self.adopt_schedulers != before.adopt_schedulers),
            ("unmanagedPods", self.unmanaged_pods != before.unmanaged_pods),
            ("metrics.authentication", self.metrics.authentication != before.metrics.authentication),
            ("scheduling.preemption.enabled", scheduling.preemption.enabled != was.preemption.enabled),
            ("scheduling.gangs.enabled", evicts && scheduling.gangs.enabled != was.gangs.enabled),
            ("the revocable zones of dialects.volcano", evicts && self.has_windows() != before.has_windows()),
            ("scheduling.claims.enabled", scheduling.claims.enabled != was.claims.enabled),
            ("protection", self.protection != before.protection),
            ("workloads", self.workloads != before.workloads),
            ("dialects.hami.resource*Name", self.dialects.hami.names() != before.dialects.hami.names()),
            ("dialects.koordinator.enabled", koordinator.enabled != koordinator_was.enabled),
            ("dialects.koordinator.wholeCards", koordinator.whole_cards != koordinator_was.whole_cards),
            ("the vendors of dialects.hami", self.dialects.hami.vendors != before.dialects.hami.vendors),
        ];
        keys.into_iter().filter_map(|(key, differs)| differs.then_some(key)).collect()
    }

    /// Whether pods are ever evicted: those of a gang that is not whole in time, and those of a revocable zone that closes.
    pub fn evicts(&self) -> bool {
        self.scheduling.gangs.enabled || self.has_windows()
    }

    /// Whether a revocable zone has a window.
    fn has_windows(&self) -> bool {
        !self.revocable_zones().windows.is_empty()
    }

    /// These settings with the scheduler's name, the scope and the resource names of `before`, which the installed webhook configurations
    /// still contain, and with its claims, for which the installed roles have rights or none.
    #[must_use]
    pub fn named_as(mut self, before: &Self) -> Self {
        self.scheduler_name.clone_from(&before.scheduler_name);
        self.scope = before.scope;
        self.scheduling.claims = before.scheduling.claims;
        self.dialects.hami.take_names(&before.dialects.hami);
        self.dialects.koordinator.whole_cards = before.dialects.koordinator.whole_cards;
        self
    }

    /// The kinds of workloads: the built-in ones, and those of the settings.
    pub fn workloads(&self) -> Workloads {
        Workloads::default().and(self.workloads.iter().map(WorkloadConfig::kind).collect())
    }

    /// The dialects that are spoken.
    pub fn dialects(&self) -> Dialects {
        let hami = &self.dialects.hami;
        let volcano = &self.dialects.volcano;
        let vendors = hami.vendors().into_iter().map(|vendor| Arc::new(vendor) as Arc<dyn Dialect>);
        let hami = hami.enabled.then(|| Arc::new(hami::Hami::new(hami.settings())) as Arc<dyn Dialect>);
        let vgpu = (volcano.enabled && volcano.arguments.modes.vgpu)
            .then(|| Arc::new(volcano::Volcano::new(volcano.settings())) as Arc<dyn Dialect>);
        let gpushare = volcano.gpushare().filter(|_| volcano.enabled);
        let gpushare =
            gpushare.map(|settings| Arc::new(gpushare::GpuShare::new(settings)) as Arc<dyn Dialect>);
        let koordinator = &self.dialects.koordinator;
        let cards = if koordinator.whole_cards { WholeCards::WithoutShares } else { WholeCards::LeftOut };
        let koordinator = koordinator.enabled.then(|| Arc::new(Koordinator::new(cards)) as Arc<dyn Dialect>);
        let dialects = hami.into_iter().chain(vendors).chain(vgpu).chain(gpushare).chain(koordinator);
        Dialects::new(dialects.collect())
    }

    /// The settings of the admission rules.
    pub fn admission_settings(&self) -> admission::AdmissionSettings {
        let overwrite = self.dialects.hami.force_overwrite_default_scheduler;
        admission::AdmissionSettings {
            scheduler_name: self.scheduler_name.clone(),
            adopt_schedulers: self.adopt_schedulers.iter().cloned().collect(),
            default_scheduler: if overwrite { DefaultScheduler::Overwrite } else { DefaultScheduler::Leave },
            modes: self.modes(),
            resources: self.resource_names(),
            hami: self.dialects.hami.defaults(),
            claims: if self.scheduling.claims.enabled {
                ResourceClaimSupport::Served
            } else {
                ResourceClaimSupport::NotServed
            },
            zones: self.dialects.volcano.arguments.tdm.revocable_zones.keys().cloned().collect(),
            guards: self.guards,
        }
    }

    /// What the resources of each mode are called.
    fn resource_names(&self) -> BTreeMap<SharingMode, ResourceNames> {
        let hami = &self.dialects.hami;
        let hami = ResourceNames {
            count: hami.resource_count_name.clone(),
            memory: hami.resource_memory_name.clone(),
            memory_percentage: hami.resource_memory_percentage_name.clone(),
            cores: hami.resource_core_name.clone(),
            memory_factor: hami.memory_factor,
        };
        let vgpu = ResourceNames {
            count: volcano::names::COUNT.to_owned(),
            memory: volcano::names::MEMORY.to_owned(),
            memory_percentage: volcano::names::MEMORY_PERCENTAGE.to_owned(),
            cores: volcano::names::CORES.to_owned(),
            memory_factor: self.dialects.volcano.gpu_memory_factor,
        };
        BTreeMap::from([(SharingMode::Hami, hami), (SharingMode::Vgpu, vgpu)])
    }

    /// The modes that are served.
    fn modes(&self) -> BTreeSet<SharingMode> {
        self.dialects().iter().map(|dialect| dialect.mode().clone()).collect()
    }

    /// What reads pods and nodes for the scheduler, where none of the adopted schedulers runs.
    pub fn reader(&self) -> Reader {
        let reader = Reader::new(self.dialects(), self.scheduler_name.clone());
        let reader = reader.following(self.scheduling.followed()).weighing(self.scheduling.score_weights());
        let reader = reader.adopting(self.adopted_names());
        let reader = reader.placing_pods(match self.scheduling.pods.policy {
            PodsPolicy::LeastWaste => NodePolicy::LeastWaste,
            PodsPolicy::Balanced => NodePolicy::Indifferent,
        });
        if self.revocable_zones().is_off() { reader } else { reader.dividing_time() }
    }

    /// The names whose share pods are placed although admission has not renamed them; `default-scheduler`, which always runs, is none.
    pub fn adopted_names(&self) -> BTreeSet<String> {
        let names = self.adopt_schedulers.iter().filter(|name| *name != DEFAULT_SCHEDULER);
        names.cloned().collect()
    }

    /// The settings of the scheduler.
    pub fn scheduler_settings(&self) -> scheduling::scheduler::Settings {
        scheduling::scheduler::Settings {
            device_resources: self.reader().device_resources(),
            lock_expiry: self.dialects.hami.node_locks.expire,
            weights: self.scheduling.score_weights(),
            arguments: self.plugin_arguments(),
            preemption: self.scheduling.preemption.rules(),
            rooms: self.scheduling.pods.rooms(),
            zones: self.revocable_zones(),
            gangs: self.scheduling.gangs.timeout(),
            held_percent: self.scheduling.volumes.held_percent,
            claims: self.scheduling.claims.served(),
            pace: scheduling::scheduler::Pace::Shared,
        }
    }

    /// The revocable zones and their windows. Without Volcano's dialect or any window time division is off, and no node is in a zone.
    pub fn revocable_zones(&self) -> RevocableZones {
        let volcano = &self.dialects.volcano;
        let tdm = &volcano.arguments.tdm;
        if !volcano.enabled || tdm.revocable_zones.is_empty() {
            return RevocableZones::default();
        }
        RevocableZones {
            label: marks::REVOCABLE_ZONE.to_owned(),
            windows: tdm
                .revocable_zones
                .iter()
                .map(|(zone, windows)| (zone.as_str().into(), windows.clone()))
                .collect(),
            // The settings are refused where there is no such time zone.
            time_zone: TimeZone::get(&volcano.time_zone).unwrap_or(TimeZone::UTC),
            grace: tdm.grace_period,
            evict_period: tdm.evict_period,
        }
    }

    /// Which series `/metrics` shows.
    pub fn shown(&self) -> ShownSeries {
        let series = |exported| if exported { Series::Exported } else { Series::LeftOut };
        ShownSeries {
            pods: series(self.metrics.pods),
            hami: series(self.metrics.hami_names),
            limit: usize::try_from(self.metrics.series_limit).unwrap_or(usize::MAX),
            asked: None,
        }
    }

    /// What is said to single plugins.
    pub fn plugin_arguments(&self) -> PluginArguments {
        self.scheduling.plugin_config.arguments().with(self.scheduling.followed())
    }
}

impl HamiConfig {
    /// What is set in pods of its mode.
    fn defaults(&self) -> HamiDefaults {
        HamiDefaults {
            priority: self.resource_priority_name.clone(),
            runtime_class: Some(self.runtime_class_name.clone()).filter(|class| !class.is_empty()),
            core_policy: match self.gpu_core_policy {
                GpuCorePolicy::Default => None,
                GpuCorePolicy::Force => Some("force"),
                GpuCorePolicy::Disable => Some("disable"),
            },
            bystanders: if self.overwrite_env { Bystanders::Blind } else { Bystanders::Unchanged },
        }
    }

    fn card_policies(&self) -> Vec<CardPolicy> {
        self.gpu_scheduler_policy.iter().copied().map(card_policy).collect()
    }

    /// The other vendors that are served.
    fn vendors(&self) -> Vec<Vendor> {
        if !self.enabled {
            return Vec::new();
        }
        let settings = vendor::VendorSettings {
            node_policy: node_policy(self.node_scheduler_policy),
            card_policies: self.card_policies(),
            lock_expiry: self.node_locks.expire,
        };
        self.vendors.rows().into_iter().map(|row| Vendor::new(row, settings.clone())).collect()
    }

    /// What the resources are called.
    fn names(&self) -> [&str; 5] {
        [
            &self.resource_count_name,
            &self.resource_memory_name,
            &self.resource_memory_percentage_name,
            &self.resource_core_name,
            &self.resource_priority_name,
        ]
    }

    fn take_names(&mut self, other: &Self) {
        self.resource_count_name.clone_from(&other.resource_count_name);
        self.resource_memory_name.clone_from(&other.resource_memory_name);
        self.resource_memory_percentage_name.clone_from(&other.resource_memory_percentage_name);
        self.resource_core_name.clone_from(&other.resource_core_name);
        self.resource_priority_name.clone_from(&other.resource_priority_name);
        self.vendors.clone_from(&other.vendors);
    }

    /// The settings of the dialect.
    pub fn settings(&self) -> hami::HamiSettings {
        hami::HamiSettings {
            count: self.resource_count_name.clone(),
            memory: self.resource_memory_name.clone(),
            memory_percentage: self.resource_memory_percentage_name.clone(),
            cores: self.resource_core_name.clone(),
            priority: self.resource_priority_name.clone(),
            default_memory: MiB::new(self.default_memory.into()),
            default_cores: Cores::new(self.default_cores),
            default_count: self.default_gpu_num,
            memory_factor: self.memory_factor,
            node_policy: node_policy(self.node_scheduler_policy),
            card_policies: self.card_policies(),
            lock: LockSpec {
                key: hami::names::LOCK.to_owned(),
                form: LockForm::Comma,
                expiry: self.node_locks.expire,
                need: match self.node_locks.policy {
                    NodeLockPolicy::Always => LockNeed::Always,
                    NodeLockPolicy::Auto => LockNeed::WhereContested,
                },
            },
        }
    }
}

impl VendorsConfig {
    /// The rows of the families that are served.
    fn rows(&self) -> Vec<VendorRow> {
        let served = |family: &Option<FamilyConfig>, row: fn(FamilyResources) -> VendorRow| {
            family.as_ref().filter(|family| family.enabled).map(|family| row(family.resources()))
        };
        let hygon = Some(&self.hygon).filter(|hygon| hygon.enabled);
        let hygon = hygon.map(|hygon| hygon::row(hygon.resources(), hygon.memory_factor.unwrap_or(1)));
        let others = [
            served(&self.cambricon, cambricon::row),
            served(&self.amd, amd::row),
            served(&self.biren, biren::row),
        ];
        let iluvatar = self.iluvatars.iter().map(ChipConfig::row);
        let ascend = self.vnpus.iter().flat_map(VnpusConfig::rows);
        hygon.into_iter().chain(others.into_iter().flatten()).chain(iluvatar).chain(ascend).collect()
    }
}

impl ChipConfig {
    fn row(&self) -> VendorRow {
        let resources = FamilyResources {
            count: self.resource_count_name.clone(),
            memory: Some(self.resource_memory_name.clone()),
            cores: Some(self.resource_core_name.clone()),
        };
        iluvatar::row(&self.common_word, resources)
    }
}

impl VnpusConfig {
    fn rows(&self) -> impl Iterator<Item = VendorRow> + '_ {
        let unsaid = if self.hami_vnpu_core { Splitting::Software } else { Splitting::Templates };
        self.configs.iter().map(move |chip| {
            let resources = FamilyResources {
                count: chip.resource_name.clone(),
                memory: Some(chip.resource_memory_name.clone()),
                cores: Some(chip.resource_core_name.clone()),
            };
            let sizes = chip.templates.iter().map(|template| SliceTemplate {
                name: template.name.clone(),
                memory: MiB::new(template.memory.into()),
            });
            let templates = Templates {
                sizes: sizes.collect(),
                allocatable: MiB::new(chip.memory_allocatable.into()),
                capacity: MiB::new(chip.memory_capacity.into()),
                unsaid,
            };
            let class = Some(chip.runtime_class_name.clone()).filter(|class| !class.is_empty());
            let row = ascend::row(&chip.common_word, resources, chip.memory_factor, templates);
            VendorRow { runtime_class: class, ..row }
        })
    }
}

impl VolcanoConfig {
    /// The settings of the dialect of vGPUs.
    pub fn settings(&self) -> volcano::VolcanoSettings {
        let arguments = &self.arguments;
        volcano::VolcanoSettings {
            memory_factor: self.gpu_memory_factor,
            card_policy: card_policy(arguments.schedule_policy),
            node_policy: match arguments.schedule_weight {
                0 => NodePolicy::Indifferent,
                _ => node_policy(arguments.schedule_policy),
            },
            geometries: self.geometries(),
            exclusive_rules: arguments.exclusive_rules.clone(),
            lock: arguments.node_lock.then(|| self.lock(volcano::names::LOCK)),
        }
    }

    /// Those that are configured, all of them; the plugin's own where none is.
    fn geometries(&self) -> Vec<ModelGeometries> {
        if self.known_mig_geometries.is_empty() {
            return ModelGeometries::built_in();
        }
        let read = |entry| ModelGeometries::read(entry).expect("geometries are checked when they are read");
        self.known_mig_geometries.iter().map(read).collect()
    }

    fn lock(&self, key: &str) -> LockSpec {
        LockSpec {
            key: key.to_owned(),
            form: match self.lock_value {
                LockValue::Owned => LockForm::Underscore,
                LockValue::Bare => LockForm::Bare,
            },
            expiry: VOLCANO_LOCK_EXPIRY,
            need: LockNeed::Always,
        }
    }

    /// The dialect of cards by number, if one of its units is enabled.
    fn gpushare(&self) -> Option<gpushare::GpuShareSettings> {
        let unit = match (self.arguments.modes.gpu_sharing, self.arguments.modes.gpu_number) {
            (true, _) => gpushare::ShareUnit::Memory,
            (_, true) => gpushare::ShareUnit::Cards,
            (false, false) => return None,
        };
        let lock = self.arguments.node_lock.then(|| self.lock(volcano::names::GPU_LOCK));
        Some(gpushare::GpuShareSettings { unit, memory_factor: self.gpu_memory_factor, lock })
    }
}

fn card_policy(policy: SchedulerPolicy) -> CardPolicy {
    match policy {
        SchedulerPolicy::Binpack => CardPolicy::Binpack,
        SchedulerPolicy::Spread => CardPolicy::Spread,
        SchedulerPolicy::Mutex => CardPolicy::Mutex,
        SchedulerPolicy::Numa => CardPolicy::Numa,
        SchedulerPolicy::TopologyAware => CardPolicy::TopologyAware,
        SchedulerPolicy::LeastWaste => CardPolicy::LeastWaste,
    }
}

/// Nodes are packed, spread or compared by what is wasted; no key takes another policy for them.
fn node_policy(policy: SchedulerPolicy) -> NodePolicy {
    match policy {
        SchedulerPolicy::Spread => NodePolicy::Spread,
        SchedulerPolicy::LeastWaste => NodePolicy::LeastWaste,
        SchedulerPolicy::Binpack
        | SchedulerPolicy::Mutex
        | SchedulerPolicy::Numa
        | SchedulerPolicy::TopologyAware => NodePolicy::Binpack,
    }
}
