//! Vendors whose cards are a family for each chip: the lists `iluvatars:` and `vnpus:`.
//!
//! Names and sizes only; what they come to is `layers`'s.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{FamilyNames, MOST_MEMORY};
use crate::{
    config::{
        error::Notice,
        section::{Field, Section},
        trouble::Trouble,
    },
    dialect::vendor::{ascend, iluvatar, row::FamilyResources},
};

/// One chip of Iluvatar's.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChipConfig {
    /// The word in its annotations.
    pub common_word: String,
    /// The resource that counts shares.
    pub resource_count_name: String,
    /// 256 MiB of each share.
    pub resource_memory_name: String,
    /// Percent of a card's compute.
    pub resource_core_name: String,
}

/// Ascend's chips.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VnpusConfig {
    /// Whether nodes that do not say so share in software.
    pub hami_vnpu_core: bool,
    /// The chips.
    pub configs: Vec<VnpuConfig>,
}

/// One chip of Ascend's.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VnpuConfig {
    /// The word in its annotations.
    pub common_word: String,
    /// The resource that counts shares.
    pub resource_name: String,
    /// Memory of each share.
    pub resource_memory_name: String,
    /// Percent of a card's compute.
    pub resource_core_name: String,
    /// What pods may have of a whole card, in MiB.
    pub memory_allocatable: u32,
    /// What a card has, in MiB.
    pub memory_capacity: u32,
    /// MiB for each unit of the memory resource.
    pub memory_factor: u32,
    /// The runtime class of share pods that name none; empty: theirs stays.
    pub runtime_class_name: String,
    /// What the driver cuts a card into, from the smallest to the largest.
    pub templates: Vec<TemplateConfig>,
}

/// One size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TemplateConfig {
    /// Its name.
    pub name: String,
    /// Its memory, in MiB.
    pub memory: u32,
}

const PAIRS_WHY: &str = "has no effect: Berth does not serve chips that are allocated in pairs and leaves their pods to other schedulers";

/// A word stands within the keys of annotations.
fn word(section: &mut Section, at: &Field, seen: &mut BTreeSet<String>) -> Result<String, Trouble> {
    let field = section.take("commonWord").ok_or_else(|| at.trouble("has no `commonWord`"))?;
    let word = field.text()?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let ends = |c: char| c.is_ascii_alphanumeric();
    let good = word.starts_with(ends) && word.ends_with(ends) && word.chars().all(fits) && word.len() <= 40;
    if !good {
        let message = format!("`{word}` is not a word of up to 40 letters, digits, `-`, `_` and `.`");
        return Err(field.trouble(message));
    }
    if !seen.insert(word.to_ascii_lowercase()) {
        return Err(field.trouble(format!("`{word}` is already the word of another family")));
    }
    Ok(word)
}

/// The words that families without a list have.
fn taken_words() -> BTreeSet<String> {
    ["nvidia", "dcu", "mlu", "amd", "biren"].map(str::to_owned).into()
}

fn disabled(field: &Field, flag: &str) -> Notice {
    field.notice(format!("served only with `{flag}: true`, which HAMi's flag of that name is"))
}

pub(super) fn iluvatars(
    section: &mut Section,
    enabled: bool,
    notices: &mut Vec<Notice>,
) -> Result<Vec<ChipConfig>, Trouble> {
    let Some(field) = section.take("iluvatars") else {
        let known = iluvatar::WORDS.iter().filter(|_| enabled);
        return Ok(known.map(|word| ChipConfig::by_default(word)).collect());
    };
    let mut seen = taken_words();
    let chips = field.list()?.iter().map(|field| chip(field, &mut seen)).collect::<Result<Vec<_>, _>>()?;
    if !enabled {
        notices.push(disabled(&field, "enable-iluvatar"));
        return Ok(Vec::new());
    }
    Ok(chips)
}

impl ChipConfig {
    fn by_default(word: &str) -> Self {
        let FamilyResources { count, memory, cores } = iluvatar::resources(word);
        Self {
            common_word: word.to_owned(),
            resource_count_name: count,
            resource_memory_name: memory.unwrap_or_default(),
            resource_core_name: cores.unwrap_or_default(),
        }
    }
}

fn chip(field: &Field, seen: &mut BTreeSet<String>) -> Result<ChipConfig, Trouble> {
    let mut section = Section::of(field)?;
    let default = ChipConfig::by_default(&word(&mut section, field, seen)?);
    section.accept(&["chipName"]);
    let mut names = FamilyNames::default();
    let config = ChipConfig {
        resource_count_name: names.take(&mut section, "resourceCountName", &default.resource_count_name)?,
        resource_memory_name: names.take(
            &mut section,
            "resourceMemoryName",
            &default.resource_memory_name,
        )?,
        resource_core_name: names.take(&mut section, "resourceCoreName", &default.resource_core_name)?,
        common_word: default.common_word,
    };
    section.finish()?;
    Ok(config)
}

/// A list of chips, as in HAMi up to v2.8, or `configs` with what holds for all of them.
pub(super) fn vnpus(
    section: &mut Section,
    enabled: bool,
    notices: &mut Vec<Notice>,
) -> Result<Option<VnpusConfig>, Trouble> {
    let Some(field) = section.take("vnpus") else {
        return Ok(enabled.then(|| VnpusConfig {
            hami_vnpu_core: false,
            configs: ascend::WORDS.iter().filter_map(|word| VnpuConfig::by_default(word)).collect(),
        }));
    };
    let (hami_vnpu_core, list) = if field.is_list() {
        (false, field.list()?)
    } else {
        let mut section = Section::of(&field)?;
        let core = section.off_unless_on("hamiVnpuCore")?;
        let list = section.take("configs").map_or(Ok(Vec::new()), |field| field.list())?;
        section.finish()?;
        (core, list)
    };
    let mut seen = taken_words();
    let mut configs = Vec::new();
    for field in &list {
        configs.extend(vnpu(field, &mut seen, notices)?);
    }
    if !enabled {
        notices.push(disabled(&field, "enable-ascend"));
        return Ok(None);
    }
    Ok(Some(VnpusConfig { hami_vnpu_core, configs }))
}

impl VnpuConfig {
    fn by_default(word: &str) -> Option<Self> {
        let templates = ascend::known(word)?;
        let mebibytes = |memory: crate::device::MiB| u32::try_from(memory.get()).unwrap_or(u32::MAX);
        let FamilyResources { count, memory, cores } = ascend::resources(word);
        Some(Self {
            common_word: word.to_owned(),
            resource_name: count,
            resource_memory_name: memory.unwrap_or_default(),
            resource_core_name: cores.unwrap_or_default(),
            memory_allocatable: mebibytes(templates.allocatable),
            memory_capacity: mebibytes(templates.capacity),
            memory_factor: 1,
            runtime_class_name: String::new(),
            templates: templates
                .sizes
                .into_iter()
                .map(|template| TemplateConfig { name: template.name, memory: mebibytes(template.memory) })
                .collect(),
        })
    }
}

/// One chip; none where it is given in pairs.
fn vnpu(
    field: &Field,
    seen: &mut BTreeSet<String>,
    notices: &mut Vec<Notice>,
) -> Result<Option<VnpuConfig>, Trouble> {
    let mut section = Section::of(field)?;
    let common_word = word(&mut section, field, seen)?;
    let pairs = section.off_unless_on("superPod")? || common_word == ascend::IN_PAIRS;
    section.accept(&["chipName", "aiCore", "aiCPU", "overwriteEnv", "topologyPairs"]);
    let default = ascend::resources(&common_word);
    let mut names = FamilyNames::default();
    let resource_name = names.take(&mut section, "resourceName", &default.count)?;
    let mut take = |key, default: Option<String>| names.take(&mut section, key, &default.unwrap_or_default());
    let resource_memory_name = take("resourceMemoryName", default.memory)?;
    let resource_core_name = take("resourceCoreName", default.cores)?;
    let allocatable = section.take("memoryAllocatable");
    let allocatable = allocatable.ok_or_else(|| field.trouble("has no `memoryAllocatable`"))?;
    let memory_allocatable = memory(&allocatable)?;
    let memory_capacity = section.int("memoryCapacity", memory_allocatable, 1..=MOST_MEMORY)?;
    let config = VnpuConfig {
        common_word,
        resource_name,
        resource_memory_name,
        resource_core_name,
        memory_allocatable,
        memory_capacity,
        memory_factor: section.int("memoryFactor", 1, 1..=MOST_MEMORY)?,
        runtime_class_name: section
            .take("runtimeClassName")
            .map_or(Ok(String::new()), |field| field.text())?,
        templates: templates(&mut section)?,
    };
    section.finish()?;
    if pairs {
        notices.push(field.notice(PAIRS_WHY));
        return Ok(None);
    }
    Ok(Some(config))
}

fn memory(field: &Field) -> Result<u32, Trouble> {
    let memory = field.int(&(1..=MOST_MEMORY))?;
    u32::try_from(memory).map_err(|_| field.trouble(format!("`{memory}` is out of range")))
}

fn templates(section: &mut Section) -> Result<Vec<TemplateConfig>, Trouble> {
    let Some(field) = section.take("templates") else { return Ok(Vec::new()) };
    let template = |field: &Field| {
        let mut section = Section::of(field)?;
        let name = section.take("name").ok_or_else(|| field.trouble("has no `name`"))?.text()?;
        let size = section.take("memory").ok_or_else(|| field.trouble("has no `memory`"))?;
        section.accept(&["aiCore", "aiCPU"]);
        section.finish()?;
        Ok(TemplateConfig { name, memory: memory(&size)? })
    };
    let mut templates = field.list()?.iter().map(template).collect::<Result<Vec<_>, _>>()?;
    templates.sort_by_key(|template| template.memory);
    Ok(templates)
}
