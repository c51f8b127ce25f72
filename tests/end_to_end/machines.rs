//! Nodes with cards, a description for each vendor and plugin.
//!
//! It must not start anything.

use berth_sandbox::agent::{
    card::{Card, Health},
    koordlet::{Gpu, Koordlet, Npu},
    node::Node,
    plugin::{Plugin, Spelling},
    strategy::Strategy,
    wire::Release,
};

/// A node with HAMi's plugin and cards of 16 GiB.
pub(crate) fn hami_node(name: &str, cards: u32) -> Node {
    let node = sized(Node::new(name), name, cards);
    node.hami(Release::V2_10)
}

/// A node with an older release of HAMi's plugin and a card of 16 GiB.
pub(crate) fn old_hami_node(name: &str, release: Release) -> Node {
    sized(Node::new(name), name, 1).hami(release)
}

/// A node with Volcano's vGPU plugin and cards of 16 GiB.
pub(crate) fn volcano_node(name: &str, cards: u32) -> Node {
    sized(Node::new(name), name, cards).volcano()
}

/// A node with Volcano's older plugin and cards of 16 GiB.
pub(crate) fn gpushare_node(name: &str, cards: u32, strategy: Strategy) -> Node {
    sized(Node::new(name), name, cards).plugin(Plugin::GpuShare(strategy))
}

fn sized(node: Node, name: &str, cards: u32) -> Node {
    let node = node.allocatable("cpu", "32").allocatable("memory", "128Gi").allocatable("pods", "110");
    (0..cards).fold(node, |node, index| {
        node.card(
            Card::new(&format!("GPU-{name}-{index}"), index, 16_384).slots(10).product("NVIDIA A100-SXM4"),
        )
    })
}

/// A node of this vendor's with so many cards, called `<prefix>-<node>-<number>`.
fn vendors(plugin: Plugin, prefix: &str, name: &str, cards: u32, card: impl Fn(Card) -> Card) -> Node {
    let own = |index| card(Card::new(&format!("{prefix}-{name}-{index}"), index, 0));
    (0..cards).fold(Node::new(name), |node, index| node.card(own(index))).plugin(plugin)
}

/// A node with Hygon's plugin and cards of 32 GiB.
pub(crate) fn hygon_node(name: &str, cards: u32) -> Node {
    vendors(Plugin::Hygon, "DCU", name, cards, |card| {
        Card { memory: 32_768, ..card }.slots(4).product("DCU-Z100")
    })
}

/// A node with Ascend's plugin and cards 910B3 of 64 GiB.
pub(crate) fn ascend_node(name: &str, cards: u32) -> Node {
    vendors(Plugin::Ascend, "NPU", name, cards, |card| {
        let card = card.slots(4).product("Ascend910B3");
        Card { memory: 65_536, cores: 20, mode: String::new(), ..card }
    })
}

/// A node with Iluvatar's plugin and cards MR-V100 of 32 GiB.
pub(crate) fn iluvatar_node(name: &str, cards: u32) -> Node {
    vendors(Plugin::Iluvatar, "ILU", name, cards, |card| {
        Card { memory: 32_768, ..card }.slots(16).product("MR-V100")
    })
}

/// A node with AMD's plugin and cards of 192 GiB and 304 compute units.
pub(crate) fn amd_node(name: &str, cards: u32) -> Node {
    vendors(Plugin::Amd, "AMD", name, cards, |card| {
        let card = card.product("AMD Instinct MI300X");
        Card { memory: 196_608, cores: 304, mode: String::new(), ..card }
    })
}

/// A node with Biren's plugin, which tells nothing of a card's compute.
pub(crate) fn biren_node(name: &str, cards: u32) -> Node {
    vendors(Plugin::Biren, "card", name, cards, |card| {
        let card = card.slots(1).product("Biren106B");
        Card { memory: 65_024, cores: 0, mode: String::new(), ..card }
    })
}

/// A node with Cambricon's plugin and cards of 24 GiB, which have the names that HAMi gives them.
pub(crate) fn cambricon_node(name: &str, cards: u32, spelling: Spelling) -> Node {
    let card =
        |index| Card::new(&format!("{name}-cambricon-mlu-{index}"), index, 24_576).slots(100).product("MLU");
    let node = (0..cards).fold(Node::new(name), |node, index| node.card(card(index)));
    node.plugin(Plugin::Cambricon(spelling))
}

/// A node with Koordinator's node side and Cambricon's plugin: MLUs of 24 GiB.
pub(crate) fn koordinators_cambricon_node(name: &str, cards: u32, spelling: Spelling) -> Node {
    let card = |index| Card::new(&format!("MLU-{name}-{index}"), index, 24_576).slots(100).product("MLU-370");
    let node = (0..cards).fold(Node::new(name), |node, index| node.card(card(index)));
    node.plugin(Plugin::Cambricon(spelling)).koordlet(vendors_gpus(name, ("cambricon", "MLU"), cards, 24))
}

/// A node with Koordinator's node side and MetaX' plugin: C500s of 64 GiB.
pub(crate) fn koordinators_metax_node(name: &str, cards: u32) -> Node {
    Node::new(name).plugin(Plugin::Metax).koordlet(vendors_gpus(name, ("metax", "C500"), cards, 64))
}

/// Cards of this vendor and model with so many GiB, called `<model>-<node>-<number>`.
fn vendors_gpus(name: &str, (vendor, model): (&'static str, &str), cards: u32, memory: u64) -> Koordlet {
    let gpu = |minor: u32| Gpu {
        uuid: format!("{model}-{name}-{minor}"),
        minor,
        memory: memory << 30,
        numa: 0,
        pcie: "pci0000:00".to_owned(),
        health: Health::Healthy,
    };
    let (gpus, model) = ((0..cards).map(gpu).collect(), model.to_owned());
    Koordlet { gpus, model, vendor: Some(vendor), ..Koordlet::default() }
}

/// A node with Koordinator's node side: GPUs and NICs as [`Koordlet::new`] has them, each NIC with two virtual functions.
pub(crate) fn koordinator_node(name: &str, gpus: u32, nics: u32) -> Node {
    Node::new(name).koordlet(Koordlet::new(name, gpus, nics).with_functions())
}

/// A node with Koordinator's node side and Ascend cards 310P3 of 21 GiB, 8 AI cores and 7 AI CPUs.
pub(crate) fn npu_node(name: &str, cards: u32) -> Node {
    let npu = |minor: u32| Gpu {
        uuid: format!("NPU-{name}-{minor}"),
        minor,
        memory: 21 << 30,
        numa: 0,
        pcie: "pci0000:00".to_owned(),
        health: Health::Healthy,
    };
    let (gpus, model) = ((0..cards).map(npu).collect(), "Ascend-310P3".to_owned());
    Node::new(name).koordlet(Koordlet {
        gpus,
        model,
        npu: Some(Npu { core: 8, cpu: 7 }),
        ..Koordlet::default()
    })
}
