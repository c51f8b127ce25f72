//! One physical card of a simulated node, and its health.

use super::cut::Cut;

/// One physical GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// As the driver gives it, `GPU-…`.
    pub uuid: String,
    /// The driver's order of cards on the node.
    pub index: u32,
    /// Into how many shares the plugin cuts it.
    pub slots: u64,
    /// MiB.
    pub memory: u64,
    /// Percent of its multiprocessors, 100 unless the plugin scales cores.
    pub cores: u64,
    /// The driver's product name, as `NVIDIA A100-SXM4-40GB`.
    pub product: String,
    /// The NUMA node it hangs on.
    pub numa: u32,
    /// The plugin's operating mode of the card.
    pub mode: String,
    /// How it may be cut in MIG mode.
    pub cut: Cut,
    /// What the plugin's health check says.
    pub health: Health,
}

/// What a plugin's health check says of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It may be used.
    Healthy,
    /// It may not, until the plugin restarts.
    Unhealthy,
}

impl Card {
    /// A healthy card of ten shares in HAMi-core mode; `memory` in MiB.
    pub fn new(uuid: &str, index: u32, memory: u64) -> Self {
        Self {
            uuid: uuid.to_owned(),
            index,
            slots: 10,
            memory,
            cores: 100,
            product: "NVIDIA A100-SXM4-40GB".to_owned(),
            numa: 0,
            mode: "hami-core".to_owned(),
            cut: Cut::Whole,
            health: Health::Healthy,
        }
    }

    /// Cut into this many shares.
    #[must_use]
    pub fn slots(mut self, slots: u64) -> Self {
        self.slots = slots;
        self
    }

    /// Of this product.
    #[must_use]
    pub fn product(mut self, product: &str) -> Self {
        product.clone_into(&mut self.product);
        self
    }

    /// On this NUMA node.
    #[must_use]
    pub fn numa(mut self, numa: u32) -> Self {
        self.numa = numa;
        self
    }

    /// In MIG mode, to be cut like this.
    #[must_use]
    pub fn mig(mut self, cut: Cut) -> Self {
        "mig".clone_into(&mut self.mode);
        self.cut = cut;
        self
    }
}
