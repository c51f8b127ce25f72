//! Kinds of cards: those of one model and size are one, whichever node they are in.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use crate::device::{Card, CardDimensions, CardId, CoreUnit, MiB, Mode, NodeDevice, ProfileName};
use crate::dra::device::DeviceKind;

/// The place of a kind among all kinds.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct KindId(u16);

impl KindId {
    /// The place, from 0.
    pub fn place(self) -> usize {
        usize::from(self.0)
    }
}

/// What cards of one kind have in common.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CardKind {
    /// The dialects whose plugins offer such a card.
    pub profiles: Vec<ProfileName>,
    /// The model.
    pub model: Arc<str>,
    /// How it is shared.
    pub mode: Mode,
    /// What its compute is counted in.
    pub unit: CoreUnit,
    /// Its memory, in MiB.
    pub memory: u32,
    /// Its compute.
    pub cores: u32,
    /// How many pods may share it.
    pub slots: u16,
    /// What it is as a device of claims, for each driver that publishes it.
    pub devices: Vec<Arc<DeviceKind>>,
}

/// By hashes kinds are put in order: those that no driver publishes hash as they did before devices of claims were cards, so that their order is the same.
impl Hash for CardKind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { profiles, model, mode, unit, memory, cores, slots, devices } = self;
        (profiles, model, mode, unit, memory, cores, slots).hash(state);
        if !devices.is_empty() {
            devices.hash(state);
        }
    }
}

impl CardKind {
    /// The kind of a card that plugins of these dialects offer. A card that registers no compute has all of one.
    pub fn of(card: &Card, unit: CoreUnit, profiles: Vec<ProfileName>) -> Self {
        let cores = if card.cores.get() == 0 { 100 } else { card.cores.get() };
        Self {
            profiles,
            model: card.model.clone(),
            mode: card.mode,
            unit,
            memory: u32::try_from(card.memory.get()).unwrap_or(u32::MAX).max(1),
            cores,
            slots: u16::try_from(card.slots).unwrap_or(u16::MAX),
            devices: Vec::new(),
        }
    }

    /// The kind of a GPU that is listed as a device by type, of a node with GPUs of this model. Any number of pods may share it.
    pub fn of_gpu(
        device: &NodeDevice,
        dimensions: &CardDimensions,
        model: &str,
        profile: &ProfileName,
    ) -> Self {
        let total = |dimension| device.total.get(dimension).unwrap_or(0);
        let cores = narrow(total(&dimensions.cores));
        Self {
            profiles: vec![profile.clone()],
            model: model.into(),
            mode: Mode::Soft,
            unit: CoreUnit::Percent,
            memory: narrow(total(&dimensions.memory.amount) / MiB::BYTES).max(1),
            cores: if cores == 0 { 100 } else { cores },
            slots: u16::MAX,
            devices: Vec::new(),
        }
    }

    /// The kind of a card that no plugin offers, and a driver publishes as a device of claims.
    pub fn of_device(device: Arc<DeviceKind>) -> Self {
        Self {
            profiles: Vec::new(),
            model: device.model().into(),
            mode: Mode::Soft,
            unit: CoreUnit::Percent,
            memory: narrow(device.memory() / MiB::BYTES).max(1),
            cores: 100,
            slots: if device.shareable { u16::MAX } else { 1 },
            devices: vec![device],
        }
    }
}

/// A card that works, each once however many plugins offer it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CountedCard {
    /// Its name.
    pub id: CardId,
    /// Its kind.
    pub kind: KindId,
}

/// Every kind that a node has had. A kind keeps its place for good.
#[derive(Clone, Debug, Default)]
pub struct CardKinds {
    kinds: Vec<Arc<CardKind>>,
    /// A number drawn from each.
    ranks: Vec<u64>,
    places: HashMap<Arc<CardKind>, KindId>,
}

impl CardKinds {
    /// The kind at this place.
    #[inline]
    pub fn get(&self, id: KindId) -> &CardKind {
        &self.kinds[id.place()]
    }

    /// Whether this kind is among them. In a copy, those that came later are not.
    pub fn knows(&self, id: KindId) -> bool {
        id.place() < self.kinds.len()
    }

    /// By which cards of different kinds are put in an order that does not depend on which kind was there first.
    pub fn rank(&self, id: KindId) -> u64 {
        self.ranks[id.place()]
    }

    /// All of them, by place.
    pub fn all(&self) -> &[Arc<CardKind>] {
        &self.kinds
    }

    /// The place of a kind; a new one comes last. Kinds beyond 65,535 share the last place.
    pub(in crate::scheduling) fn place(&mut self, kind: CardKind) -> KindId {
        if let Some(place) = self.places.get(&kind) {
            return *place;
        }
        let Ok(place) = u16::try_from(self.kinds.len()) else { return KindId(u16::MAX) };
        let mut hasher = DefaultHasher::new();
        kind.hash(&mut hasher);
        self.ranks.push(hasher.finish());
        let kind = Arc::new(kind);
        self.kinds.push(kind.clone());
        self.places.insert(kind, KindId(place));
        KindId(place)
    }
}

/// The number, or the largest that there is room for.
#[inline]
pub(in crate::scheduling) fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
