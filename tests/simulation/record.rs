//! What stands on pods and nodes, read by the formats' own rules and nobody's code.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::device_claims;
use crate::devices;
use crate::gang::GROUP;
use crate::kept_room;
use crate::reservation;
use crate::time_division::Member;

/// A part of a card: MiB and percent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Share {
    pub(crate) card: String,
    pub(crate) memory: u64,
    pub(crate) cores: u64,
}

/// How much of a card there is, or is in use.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Amount {
    pub(crate) slots: u64,
    pub(crate) memory: u64,
    pub(crate) cores: u64,
}

impl Amount {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            slots: self.slots + other.slots,
            memory: self.memory + other.memory,
            cores: self.cores + other.cores,
        }
    }

    pub(crate) fn most(self, other: Self) -> Self {
        Self {
            slots: self.slots.max(other.slots),
            memory: self.memory.max(other.memory),
            cores: self.cores.max(other.cores),
        }
    }

    pub(crate) fn within(self, other: Self) -> bool {
        self.most(other) == other
    }
}

/// Whose wire format.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Family {
    Hami,
    Volcano,
}

impl Family {
    pub(crate) const BOTH: [Self; 2] = [Self::Hami, Self::Volcano];

    pub(crate) fn names(self) -> [&'static str; 3] {
        match self {
            Self::Hami => ["nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"],
            Self::Volcano => ["volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"],
        }
    }

    fn record(self) -> &'static str {
        match self {
            Self::Hami => "hami.io/vgpu-devices-allocated",
            Self::Volcano => "volcano.sh/vgpu-ids-new",
        }
    }

    fn node(self) -> &'static str {
        match self {
            Self::Hami => "hami.io/vgpu-node",
            Self::Volcano => "volcano.sh/vgpu-node",
        }
    }

    fn phase(self) -> &'static str {
        match self {
            Self::Hami => "hami.io/bind-phase",
            Self::Volcano => "volcano.sh/bind-phase",
        }
    }
}

pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"].get(key)?.as_str()
}

/// What one container asks for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Wish {
    pub(crate) cards: usize,
    pub(crate) memory: u64,
    pub(crate) cores: u64,
}

/// A pod, as far as cards go.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own that the API server shows")]
pub(crate) struct Pod {
    pub(crate) uid: String,
    pub(crate) name: String,
    pub(crate) node: String,
    pub(crate) phase: String,
    pub(crate) ours: bool,
    pub(crate) family: Option<Family>,
    /// Init containers first.
    pub(crate) wishes: Vec<Wish>,
    pub(crate) inits: usize,
    /// The uid of the Reservation that it uses.
    pub(crate) reservation: Option<String>,
    /// Whether Reservations are for it.
    pub(crate) owner: bool,
    /// What it asks for of Koordinator's devices.
    pub(crate) devices: Option<devices::Wish>,
    pub(crate) record: Option<String>,
    pub(crate) record_node: String,
    pub(crate) allocating: bool,
    pub(crate) waits_because: Option<String>,
    pub(crate) readable: bool,
    pub(crate) terminating: bool,
    pub(crate) gated: bool,
    /// Whether it shares its node with no other of these.
    pub(crate) apart: bool,
    /// Whether it counts where pods are spread over zones; one of Berth's is itself spread.
    pub(crate) spreads: bool,
    /// The claims that it uses.
    pub(crate) claims: Vec<String>,
    /// The claims of devices that it uses; `None`: one that is not made yet.
    pub(crate) device_claims: Vec<Option<String>>,
    pub(crate) priority: i64,
    /// The node that is kept for it.
    pub(crate) nominated: String,
    /// Since when that is room for which it need not preempt others.
    pub(crate) room_since: Option<Timestamp>,
    /// Whether it is to make room for another.
    pub(crate) preempted: bool,
    /// The group of Volcano's that it is placed with.
    pub(crate) group: Option<String>,
    /// The PodGroup of Kubernetes that it is placed with.
    pub(crate) kubernetes_group: Option<String>,
    /// What it says of time division.
    pub(crate) member: Member,
}

impl Pod {
    pub(crate) fn read(object: &Value) -> Self {
        let list = |key: &str| object["spec"][key].as_array().cloned().unwrap_or_default();
        let inits = list("initContainers");
        let containers: Vec<Value> = inits.iter().cloned().chain(list("containers")).collect();
        let asks = |family: &Family| {
            containers.iter().any(|container| limit(container, family.names()[0]).is_some())
        };
        let family = Family::BOTH.into_iter().find(asks);
        let wishes =
            family.map(|family| containers.iter().map(|container| wish(container, family)).collect());
        let carried = Family::BOTH.into_iter().find(|family| annotation(object, family.record()).is_some());
        let of = |key: fn(Family) -> &'static str| {
            carried.and_then(|family| annotation(object, key(family))).map(str::to_owned)
        };
        let volumes = list("volumes");
        let claims = volumes.iter().map(|volume| text(volume, "/persistentVolumeClaim/claimName").to_owned());
        let claims: Vec<String> = claims.collect();
        let readable = claims.iter().all(|claim| claim.starts_with("claim-"))
            && !family.is_none_or(|family| containers.iter().any(|container| garbled(container, family)));
        Self {
            uid: text(object, "/metadata/uid").to_owned(),
            name: text(object, "/metadata/name").to_owned(),
            node: text(object, "/spec/nodeName").to_owned(),
            phase: text(object, "/status/phase").to_owned(),
            ours: text(object, "/spec/schedulerName") == "berth",
            family,
            wishes: wishes.unwrap_or_default(),
            inits: inits.len(),
            devices: devices::Wish::of(object),
            reservation: reservation::used(object),
            owner: text(object, "/metadata/labels/app") == reservation::OWNER,
            record: of(Family::record).or_else(|| annotation(object, devices::ALLOCATED).map(str::to_owned)),
            record_node: of(Family::node).unwrap_or_default(),
            allocating: of(Family::phase).as_deref() == Some("allocating") && !is_withdrawn(object),
            waits_because: waits_because(object),
            readable,
            terminating: !text(object, "/metadata/deletionTimestamp").is_empty(),
            gated: !list("schedulingGates").is_empty(),
            apart: text(object, "/metadata/labels/app") == "apart",
            spreads: text(object, "/metadata/labels/app") == "spread",
            claims,
            device_claims: device_claims::used(object),
            priority: object["spec"]["priority"].as_i64().unwrap_or_default(),
            nominated: text(object, "/status/nominatedNodeName").to_owned(),
            room_since: kept_room::since(object),
            preempted: is_preempted(object),
            group: annotation(object, GROUP).map(str::to_owned),
            kubernetes_group: object["spec"]["schedulingGroup"]["podGroupName"].as_str().map(str::to_owned),
            member: Member::read(object),
        }
    }

    /// Whether the node's agent owes an answer for it.
    pub(crate) fn is_awaited(&self) -> bool {
        self.allocating && self.phase == "Pending"
    }

    pub(crate) fn is_live(&self) -> bool {
        !matches!(self.phase.as_str(), "Succeeded" | "Failed")
    }

    /// What Kubernetes accounts: cards, and MiB and percent as written, not for each card.
    pub(crate) fn asks(&self) -> Amount {
        let amount =
            |wish: &Wish| Amount { slots: wish.cards as u64, memory: wish.memory, cores: wish.cores };
        let (inits, apps) = self.wishes.split_at(self.inits.min(self.wishes.len()));
        let inits = inits.iter().map(amount).fold(Amount::default(), Amount::most);
        apps.iter().map(amount).fold(Amount::default(), Amount::plus).most(inits)
    }

    /// What the pod would take of its namespace's quota, on whatever cards.
    pub(crate) fn least(&self) -> Amount {
        let amount = |wish: &Wish| {
            let cards = wish.cards as u64;
            Amount { slots: cards, memory: wish.memory * cards, cores: wish.cores * cards }
        };
        let (inits, apps) = self.wishes.split_at(self.inits.min(self.wishes.len()));
        let inits = inits.iter().map(amount).fold(Amount::default(), Amount::most);
        apps.iter().map(amount).fold(Amount::default(), Amount::plus).most(inits)
    }

    /// The shares of each container that asks, or of each container.
    pub(crate) fn shares(&self) -> Result<Vec<Vec<Share>>, String> {
        let record = self.record.as_deref().filter(|_| self.devices.is_none()).unwrap_or_default();
        let mut segments = record.split(';').map(segment).collect::<Result<Vec<_>, _>>()?;
        while segments.last().is_some_and(Vec::is_empty) {
            segments.pop();
        }
        Ok(segments)
    }

    /// Whether the record gives each container what it asks for, of different cards.
    pub(crate) fn is_given_its_wish(&self) -> Result<(), String> {
        let shares = self.shares()?;
        let asking: Vec<&Wish> = match self.family {
            Some(Family::Volcano) => self.wishes.iter().filter(|wish| wish.cards > 0).collect(),
            _ => self.wishes.iter().collect(),
        };
        for (at, wish) in asking.iter().enumerate() {
            let given = shares.get(at).map(Vec::as_slice).unwrap_or_default();
            if given.len() != wish.cards {
                return Err(format!("container {at} asks for {wish:?} and is given {given:?}"));
            }
            let right = |share: &Share| (share.memory, share.cores) == (wish.memory, wish.cores);
            let apart =
                given.iter().all(|share| given.iter().filter(|other| other.card == share.card).count() == 1);
            if !given.iter().all(right) || !apart {
                return Err(format!("container {at} asks for {wish:?} and is given {given:?}"));
            }
        }
        Ok(())
    }

    /// What the pod surely holds of each card: once it runs, its init containers have ended.
    pub(crate) fn holds(&self) -> BTreeMap<String, Amount> {
        let (starting, running) = self.start_and_run();
        if self.phase == "Running" { running } else { starting }
    }

    /// What the pod may hold of each card: the most that any moment of its start or run needs.
    pub(crate) fn may_hold(&self) -> BTreeMap<String, Amount> {
        self.start_and_run().0
    }

    /// What the pod surely takes of its namespace's quota: once it runs, its init containers have ended.
    pub(crate) fn takes(&self) -> Amount {
        let [inits, apps] = self.init_and_apps();
        if self.phase == "Running" { apps } else { inits.most(apps) }
    }

    /// What the pod may take of its namespace's quota: its containers together, or the greatest of its init containers.
    pub(crate) fn may_take(&self) -> Amount {
        let [inits, apps] = self.init_and_apps();
        inits.most(apps)
    }

    fn init_and_apps(&self) -> [Amount; 2] {
        let shares = self.shares().unwrap_or_default();
        let inits = if self.family == Some(Family::Hami) { self.inits } else { 0 };
        let (inits, apps) = shares.split_at(inits.min(shares.len()));
        let amount = |share: &Share| Amount { slots: 1, memory: share.memory, cores: share.cores };
        let whole = |segment: &Vec<Share>| segment.iter().map(amount).fold(Amount::default(), Amount::plus);
        let inits = inits.iter().map(whole).fold(Amount::default(), Amount::most);
        [inits, apps.iter().map(whole).fold(Amount::default(), Amount::plus)]
    }

    fn start_and_run(&self) -> (BTreeMap<String, Amount>, BTreeMap<String, Amount>) {
        let mut apps: BTreeMap<String, Amount> = BTreeMap::new();
        let mut most: BTreeMap<String, Amount> = BTreeMap::new();
        let shares = self.shares().unwrap_or_default();
        let inits = if self.family == Some(Family::Hami) { self.inits } else { 0 };
        for (at, segment) in shares.iter().enumerate() {
            for share in segment {
                let amount = Amount { slots: 1, memory: share.memory, cores: share.cores };
                let into = if at < inits { &mut most } else { &mut apps };
                let card = into.entry(share.card.clone()).or_default();
                *card = if at < inits { card.most(amount) } else { card.plus(amount) };
            }
        }
        for (card, amount) in &apps {
            let card = most.entry(card.clone()).or_default();
            *card = card.most(*amount);
        }
        (most, apps)
    }
}

/// Whether nothing is left of what it carries that a node's agent could take: its time is closed, though nobody has served it.
fn is_withdrawn(object: &Value) -> bool {
    annotation(object, "volcano.sh/vgpu-time") == Some("18446744073709551615")
}

fn limit<'a>(container: &'a Value, name: &str) -> Option<&'a str> {
    container["resources"]["limits"].get(name)?.as_str()
}

fn garbled(container: &Value, family: Family) -> bool {
    family
        .names()
        .into_iter()
        .any(|name| limit(container, name).is_some_and(|text| text.parse::<u64>().is_err()))
}

fn wish(container: &Value, family: Family) -> Wish {
    let number = |name| limit(container, name).and_then(|text| text.parse().ok()).unwrap_or(0);
    let [count, memory, cores] = family.names().map(number);
    Wish { cards: usize::try_from(count).unwrap(), memory, cores }
}

fn waits_because(object: &Value) -> Option<String> {
    let conditions = object["status"]["conditions"].as_array()?;
    let waits = conditions
        .iter()
        .find(|condition| condition["type"] == "PodScheduled" && condition["status"] == "False")?;
    Some(waits["message"].as_str().unwrap_or_default().to_owned())
}

fn segment(text: &str) -> Result<Vec<Share>, String> {
    text.split(':').filter(|share| !share.is_empty()).map(share).collect()
}

fn share(text: &str) -> Result<Share, String> {
    let fields: Vec<&str> = text.split(',').collect();
    let [card, _, memory, cores] = fields[..] else {
        return Err(format!("a share of {} fields: {text}", fields.len()));
    };
    let number = |text: &str| text.parse().map_err(|error| format!("{text}: {error}"));
    Ok(Share { card: card.to_owned(), memory: number(memory)?, cores: number(cores)? })
}

/// The healthy cards of a node and what there is of each.
pub(crate) fn cards(node: &Value) -> Option<(Family, BTreeMap<String, Amount>)> {
    if let Some(register) = annotation(node, "hami.io/node-nvidia-register") {
        let cards: Vec<Value> = serde_json::from_str(register).ok()?;
        let healthy = cards.iter().filter(|card| card["health"] == true);
        let amount = |card: &Value| Amount {
            slots: card["count"].as_u64().unwrap_or(0),
            memory: card["devmem"].as_u64().unwrap_or(0),
            cores: card["devcore"].as_u64().unwrap_or(0),
        };
        return Some((
            Family::Hami,
            healthy.map(|card| (text(card, "/id").to_owned(), amount(card))).collect(),
        ));
    }
    let register = annotation(node, "volcano.sh/node-vgpu-register")?;
    let card = |text: &str| {
        let fields: Vec<&str> = text.split(',').collect();
        let amount = Amount { slots: fields[1].parse().ok()?, memory: fields[2].parse().ok()?, cores: 100 };
        (fields[4] == "true").then(|| (fields[0].to_owned(), amount))
    };
    Some((Family::Volcano, register.split(':').filter(|card| !card.is_empty()).filter_map(card).collect()))
}

fn is_preempted(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .filter(|condition| condition["type"] == "DisruptionTarget")
        .any(|condition| condition["status"] == "True" && condition["reason"] == "PreemptionByScheduler")
}
