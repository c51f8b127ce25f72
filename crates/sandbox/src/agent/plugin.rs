//! Which device plugin a node runs, and what tells one from another: names, keys, and what a container asks for in its units.
//!
//! It must not answer Allocate nor write anything.

use super::card::Card;
use super::keys::{
    CAMBRICON, CAMBRICON_RECORD, CAMBRICON_SERVED, METAX, METAX_RECORD, VOLCANO, VOLCANO_ALLOCATED,
};
use super::share::Names;
use super::strategy::{INDEX, Strategy};
use super::template;
use super::view::Container;
use super::wire::{AMD, ASCEND, BIREN, HYGON, ILUVATAR, NVIDIA, Release, Wire};

/// MiB in a unit of memory of Iluvatar's and Cambricon's plugins.
const BLOCK: u64 = 256;

/// The device plugin that a node runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plugin {
    /// HAMi's own, by its release.
    Hami(Release),
    /// volcano-vgpu-device-plugin.
    Volcano,
    /// Hygon's DCU plugin for HAMi.
    Hygon,
    /// Huawei's Ascend plugin for HAMi, on cards 910B3 that it cuts by templates.
    Ascend,
    /// Iluvatar's plugin for HAMi, on chips MR-V100. It is not published: it is taken to do as HAMi's own did when it came.
    Iluvatar,
    /// AMD's plugin for HAMi.
    Amd,
    /// Biren's plugin for HAMi.
    Biren,
    /// Cambricon's own plugin in the mode `dynamic-smlu`, by how it spells its annotation.
    Cambricon(Spelling),
    /// MetaX' own plugin in the mode `sgpu`.
    Metax,
    /// volcano-sh/devices, by what it counts.
    GpuShare(Strategy),
}

/// How a release of Cambricon's plugin spells the annotation by which it knows pods that wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// `CAMBRICON_DSMLU_ASSIGHED`, the older.
    Assighed,
    /// `CAMBRICON_DSMLU_ASSIGNED`.
    Assigned,
}

impl Spelling {
    pub(super) fn key(self) -> &'static str {
        match self {
            Spelling::Assighed => "CAMBRICON_DSMLU_ASSIGHED",
            Spelling::Assigned => "CAMBRICON_DSMLU_ASSIGNED",
        }
    }
}

impl Plugin {
    /// Its keys, if it speaks HAMi's protocol.
    pub(super) fn wire(self) -> Option<&'static Wire> {
        match self {
            Plugin::Hami(_) => Some(&NVIDIA),
            Plugin::Hygon => Some(&HYGON),
            Plugin::Ascend => Some(&ASCEND),
            Plugin::Iluvatar => Some(&ILUVATAR),
            Plugin::Amd => Some(&AMD),
            Plugin::Biren => Some(&BIREN),
            Plugin::Volcano | Plugin::Cambricon(_) | Plugin::Metax | Plugin::GpuShare(_) => None,
        }
    }

    pub(super) fn names(self) -> &'static Names {
        match self {
            Plugin::Volcano => &VOLCANO,
            Plugin::Cambricon(_) => &CAMBRICON,
            Plugin::Metax => &METAX,
            Plugin::GpuShare(strategy) => strategy.names(),
            _ => &self.wire().expect("all others speak HAMi's protocol").names,
        }
    }

    /// The annotation that keeps the whole assignment for good.
    pub(super) fn record(self) -> &'static str {
        match self {
            Plugin::Volcano => VOLCANO_ALLOCATED,
            Plugin::Cambricon(_) => CAMBRICON_RECORD,
            Plugin::Metax => METAX_RECORD,
            Plugin::GpuShare(_) => INDEX,
            _ => self.wire().expect("all others speak HAMi's protocol").allocated,
        }
    }

    /// The resources that it has registered with kubelet, which asks it for each of them by itself.
    pub(super) fn served(self) -> &'static [&'static str] {
        match self {
            Plugin::Cambricon(_) => &CAMBRICON_SERVED,
            _ => std::slice::from_ref(&self.names().count),
        }
    }

    /// Whether the record has a segment for each container, init containers first.
    pub(super) fn keeps_every_segment(self) -> bool {
        self.wire().is_some() || matches!(self, Plugin::Cambricon(_))
    }

    /// MiB of this card; memory that nobody asked for is the whole card. The projects differ in which of two requests wins.
    pub(super) fn memory_asked(self, container: &Container, card: &Card) -> u64 {
        let names = self.names();
        let exact = container.amount(names.memory);
        let percent = names.percentage.and_then(|name| container.amount(name));
        let percent = percent.map(|percent| card.memory * percent.min(100) / 100);
        let asked = match self {
            Plugin::Hami(_) | Plugin::Hygon | Plugin::Amd => exact.or(percent),
            Plugin::Iluvatar | Plugin::Cambricon(_) => exact.map(|blocks| blocks * BLOCK),
            Plugin::Biren => Some(0),
            Plugin::Ascend => {
                exact.map(|exact| template::size(exact).map_or(card.memory, |size| size.memory))
            }
            Plugin::Volcano | Plugin::Metax | Plugin::GpuShare(_) => percent.or(exact),
        };
        asked.unwrap_or(card.memory)
    }

    /// What of this card's compute, in the plugin's unit; `None`: it is not said, and anything will do.
    pub(super) fn cores_asked(self, container: &Container, card: &Card) -> Option<u64> {
        let stated = container.amount(self.names().cores);
        let several = container.amount(self.names().count).is_some_and(|count| count > 1);
        match self {
            Plugin::Hygon | Plugin::Cambricon(_) => Some(stated.unwrap_or(100)),
            Plugin::Iluvatar if several => Some(100),
            Plugin::Iluvatar => Some(stated.unwrap_or(0)),
            // Percent becomes compute units, of which there is at least one.
            Plugin::Amd => Some((card.cores * stated.unwrap_or(100) / 100).max(1)),
            Plugin::Biren => Some(0),
            _ => stated,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn container(limits: &Value) -> Container {
        serde_json::from_value(json!({"name": "main", "resources": {"limits": limits}})).unwrap()
    }

    #[test]
    fn each_vendor_counts_in_its_own_units() {
        let card = Card { cores: 304, ..Card::new("c", 0, 65_536) };
        let iluvatar = |count: u32| {
            container(
                &json!({"iluvatar.ai/MR-V100-vgpu": count, "iluvatar.ai/MR-V100.vMem": 8, "iluvatar.ai/MR-V100.vCore": 25}),
            )
        };
        let amd = container(&json!({"amd.com/gpu": 1, "amd.com/gpucores": 25}));
        let biren = container(&json!({"birentech.com/gpu": 2}));
        let asked = |plugin: Plugin, container: &Container| {
            (plugin.memory_asked(container, &card), plugin.cores_asked(container, &card))
        };
        assert_eq!(asked(Plugin::Iluvatar, &iluvatar(1)), (2048, Some(25)));
        assert_eq!(asked(Plugin::Iluvatar, &iluvatar(2)), (2048, Some(100)));
        assert_eq!(asked(Plugin::Amd, &amd), (65_536, Some(76)));
        assert_eq!(asked(Plugin::Biren, &biren), (0, Some(0)));
    }
}
