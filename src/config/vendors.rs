//! Settings of the other vendors of HAMi's dialect: the sections of its `device-config.yaml` beside `nvidia:`.
//!
//! Source: HAMi v2.10 `charts/hami/templates/scheduler/device-configmap.yaml`. A vendor whose resources are also those of its own
//! plain plugin is served where its section is there; Ascend and Iluvatar by HAMi's flags `enable-ascend` and `enable-iluvatar`.

mod chips;

use std::collections::BTreeSet;

use serde::Serialize;

use super::{
    error::Notice,
    section::{Field, Section},
    trouble::Trouble,
};
use crate::dialect::vendor::{amd, biren, cambricon, hygon, row::FamilyResources};
pub use chips::{ChipConfig, TemplateConfig, VnpuConfig, VnpusConfig};

/// Settings of the other vendors.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VendorsConfig {
    /// Hygon's DCU.
    pub hygon: FamilyConfig,
    /// Cambricon's MLU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cambricon: Option<FamilyConfig>,
    /// AMD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amd: Option<FamilyConfig>,
    /// Biren.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub biren: Option<FamilyConfig>,
    /// Whether Iluvatar's chips are served.
    #[serde(rename = "enable-iluvatar")]
    pub enable_iluvatar: bool,
    /// Iluvatar's chips.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub iluvatars: Vec<ChipConfig>,
    /// Whether Ascend's chips are served.
    #[serde(rename = "enable-ascend")]
    pub enable_ascend: bool,
    /// Ascend's chips.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vnpus: Option<VnpusConfig>,
}

/// One family of cards.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FamilyConfig {
    /// Whether it is served.
    pub enabled: bool,
    /// The resource that counts shares.
    pub resource_count_name: String,
    /// Memory of each share; none where cards are given whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_memory_name: Option<String>,
    /// Percent of a card's compute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_core_name: Option<String>,
    /// MiB for each unit of the memory resource, where that can be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_factor: Option<u32>,
}

/// Vendors of HAMi's that choose cards in a way of their own.
pub(super) const NOT_SERVED: [&str; 6] = ["metax", "enflame", "mthreads", "kunlun", "awsneuron", "vastai"];
const NOT_SERVED_WHY: &str =
    "has no effect: Berth does not serve this vendor and leaves its pods to other schedulers";

pub(super) const MOST_MEMORY: i64 = i32::MAX as i64;

pub(super) fn read(section: &mut Section, notices: &mut Vec<Notice>) -> Result<VendorsConfig, Trouble> {
    let hygon = section.take("hygon");
    let hygon = match hygon {
        Some(field) => family(&field, &hygon::resources(), MemoryFactor::Settable)?,
        None => FamilyConfig::by_default(hygon::resources(), MemoryFactor::Settable),
    };
    let mut stated = |key: &str, resources: FamilyResources| {
        section.take(key).map(|field| family(&field, &resources, MemoryFactor::Fixed)).transpose()
    };
    let (cambricon, amd, biren) = (
        stated("cambricon", cambricon::resources())?,
        stated("amd", amd::resources())?,
        stated("biren", biren::resources())?,
    );
    let enable_iluvatar = section.off_unless_on("enable-iluvatar")?;
    let iluvatars = chips::iluvatars(section, enable_iluvatar, notices)?;
    let enable_ascend = section.off_unless_on("enable-ascend")?;
    let vnpus = chips::vnpus(section, enable_ascend, notices)?;
    section.unused(&NOT_SERVED, NOT_SERVED_WHY, notices);
    let config =
        VendorsConfig { hygon, cambricon, amd, biren, enable_iluvatar, iluvatars, enable_ascend, vnpus };
    Ok(config)
}

/// Whether a family's unit of memory can be set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum MemoryFactor {
    Fixed,
    Settable,
}

impl FamilyConfig {
    fn by_default(resources: FamilyResources, factor: MemoryFactor) -> Self {
        let FamilyResources { count, memory, cores } = resources;
        Self {
            enabled: true,
            resource_count_name: count,
            resource_memory_name: memory,
            resource_core_name: cores,
            memory_factor: (factor == MemoryFactor::Settable).then_some(1),
        }
    }

    /// The names.
    pub fn resources(&self) -> FamilyResources {
        FamilyResources {
            count: self.resource_count_name.clone(),
            memory: self.resource_memory_name.clone(),
            cores: self.resource_core_name.clone(),
        }
    }
}

fn family(field: &Field, default: &FamilyResources, factor: MemoryFactor) -> Result<FamilyConfig, Trouble> {
    let mut section = Section::of(field)?;
    let enabled = section.on_unless_off("enabled")?;
    let mut names = FamilyNames::default();
    let count = names.take(&mut section, "resourceCountName", &default.count)?;
    let mut optional = |key, default: &Option<String>| {
        default.as_ref().map(|default| names.take(&mut section, key, default)).transpose()
    };
    let memory = optional("resourceMemoryName", &default.memory)?;
    let cores = optional("resourceCoreName", &default.cores)?;
    let memory_factor = match factor {
        MemoryFactor::Settable => Some(section.int("memoryFactor", 1, 1..=MOST_MEMORY)?),
        MemoryFactor::Fixed => None,
    };
    section.finish()?;
    Ok(FamilyConfig {
        enabled,
        resource_count_name: count,
        resource_memory_name: memory,
        resource_core_name: cores,
        memory_factor,
    })
}

/// The names of one family, each different from the others.
#[derive(Debug, Default)]
pub(super) struct FamilyNames(BTreeSet<String>);

impl FamilyNames {
    pub(super) fn take(
        &mut self,
        section: &mut Section,
        key: &str,
        default: &str,
    ) -> Result<String, Trouble> {
        let field = section.take(key);
        let name = field.as_ref().map_or(Ok(default.to_owned()), |field| field.resource_name(default))?;
        match field {
            Some(field) if self.0.contains(&name) => {
                Err(field.trouble(format!("`{name}` is already the name of another resource")))
            }
            _ => {
                self.0.insert(name.clone());
                Ok(name)
            }
        }
    }
}
